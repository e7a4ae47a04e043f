"""The results: a part for each chunk, the report, and its summary."""

from __future__ import annotations

from typing import Literal

from duly.apps.analyze.modules.figures import Figures
from duly.apps.analyze.modules.key_terms import SourceTerms
from duly.apps.analyze.modules.language import DetectedLanguage, LanguageShare
from duly.apps.analyze.modules.similarity import SimilarPair, TextSketch
from duly.apps.analyze.modules.statistics import Readability, TextStatistics
from duly.apps.analyze.request import Module
from duly.apps.analyze.values import SCHEMA_VERSION, Listed, Value

REPORT_FILE = "report.json"
MARKDOWN_FILE = "report.md"

FigureKind = Literal["dates", "money", "percentages", "emails", "ibans"]


class Findings(Value):
    """The results of the modules for a source, each under its name; or why it is unreadable."""

    language: DetectedLanguage | None = None
    size: TextStatistics | None = None
    terms: SourceTerms | None = None
    figures: Figures | None = None
    likeness: TextSketch | None = None
    unreadable: str | None = None


class Part(Findings):
    """The result of one chunk: of one module for one source."""

    schema_version: Literal[1] = SCHEMA_VERSION
    source: str


class SourceReport(Findings):
    """All results for one source."""

    name: str


class TimelineEvent(Value):
    """A date of the timeline, and its position in a source."""

    date: str
    source: str
    offset: int
    text: str
    around: str


class KeyTerm(Value):
    """A term of all sources: its count, the number of sources, and its score; the best has 1."""

    term: str
    count: int
    sources: int
    score: float


class FigureCounts(Value):
    """The number of figures of each kind, and of those with a problem."""

    dates: int = 0
    money: int = 0
    percentages: int = 0
    emails: int = 0
    ibans: int = 0
    with_problems: int = 0


class ListedFigure(Value):
    """A figure of the summary, and its position; `kind` is its field in the counts."""

    kind: FigureKind
    value: str
    currency: str | None = None
    problem: str | None = None
    source: str
    offset: int
    text: str
    around: str


class ReportTotals(Value):
    """Sums over all sources; null if no module computed them."""

    sources: int
    unreadable: int
    characters: int | None = None
    words: int | None = None
    sentences: int | None = None
    reading_minutes: float | None = None


class SourceLine(Value):
    """A source of the summary."""

    name: str
    language: str | None = None
    words: int | None = None
    reading_minutes: float | None = None
    readability: Readability | None = None
    figures: int | None = None
    unreadable: str | None = None


class ReportOverview(Value):
    """The results over all sources."""

    schema_version: Literal[1] = SCHEMA_VERSION
    modules: tuple[Module, ...]
    totals: ReportTotals
    languages: tuple[LanguageShare, ...]
    terms: tuple[KeyTerm, ...]
    figures: FigureCounts
    duplicates: Listed[SimilarPair]
    timeline: Listed[TimelineEvent]


class Report(ReportOverview):
    """The complete report, as stored in its file."""

    failed: tuple[str, ...]
    """The keys of failed chunks."""
    sources: tuple[SourceReport, ...]


class Summary(ReportOverview):
    """The report in less than 64 kB; the report has the items that lists leave out."""

    listed_figures: Listed[ListedFigure]
    """Figures with a problem first."""
    failed: Listed[str]
    sources: Listed[SourceLine]
    report: str | None = None
    """The name of the file with the complete report, if there is one."""
    readable: str | None = None
    """The name of the Markdown file, if there is one."""
