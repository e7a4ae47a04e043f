"""Texts analyzed: language, size, key terms, figures, likeness; as a job in chunks, or at once if small.

The modules are pure functions. Job and answer at once run the same ones, so they say the same.
"""

from duly.apps.analyze.documents import Library
from duly.apps.analyze.job import JOB_TYPE, declare
from duly.apps.analyze.report import Part, Report, Summary
from duly.apps.analyze.request import AnalyzeRequest, Module, Source, cost
from duly.apps.analyze.work import analyze_now

__all__ = [
    "JOB_TYPE",
    "AnalyzeRequest",
    "Library",
    "Module",
    "Part",
    "Report",
    "Source",
    "Summary",
    "analyze_now",
    "cost",
    "declare",
]
