"""Text analysis: language, statistics, key terms, figures, similarity; as a job, or at once for small texts.

The modules are pure functions. The job and the immediate response run the same ones: their results are equal.
"""

from duly.apps.analyze.analysis import analyze_now
from duly.apps.analyze.job import JOB_TYPE, declare
from duly.apps.analyze.report import Part, Report, Summary
from duly.apps.analyze.request import AnalyzeRequest, Module, Source, cost
from duly.apps.analyze.sources import SourceReader

__all__ = [
    "JOB_TYPE",
    "AnalyzeRequest",
    "Module",
    "Part",
    "Report",
    "Source",
    "SourceReader",
    "Summary",
    "analyze_now",
    "cost",
    "declare",
]
