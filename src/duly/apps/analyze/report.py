"""What comes out: a part for each chunk, the whole report, and the summary that a page shows."""

from __future__ import annotations

from typing import Literal

from duly.apps.analyze.modules.figures import FiguresFound
from duly.apps.analyze.modules.language import LanguageFound, LanguageShare
from duly.apps.analyze.modules.likeness import LikenessFound, Pair
from duly.apps.analyze.modules.size import Readability, SizeFound
from duly.apps.analyze.modules.terms import TermsFound
from duly.apps.analyze.request import Module
from duly.apps.analyze.values import SCHEMA_VERSION, Listed, Value

REPORT = "report.json"
READABLE = "report.md"

Kind = Literal["dates", "money", "percentages", "emails", "ibans"]


class Findings(Value):
    """What the modules found in a source, each under its name; or why nothing could be read."""

    language: LanguageFound | None = None
    size: SizeFound | None = None
    terms: TermsFound | None = None
    figures: FiguresFound | None = None
    likeness: LikenessFound | None = None
    unreadable: str | None = None


class Part(Findings):
    """The result of one chunk: one module's findings in one source."""

    schema_version: Literal[1] = SCHEMA_VERSION
    source: str


class SourceReport(Findings):
    """Everything about one source."""

    name: str


class Event(Value):
    """A date of the timeline, and where it is said."""

    date: str
    source: str
    offset: int
    text: str
    around: str


class KeyTerm(Value):
    """A term over all sources: how often, in how many, and its score; the best is 1."""

    term: str
    count: int
    sources: int
    score: float


class FigureCounts(Value):
    """How many figures there are of each kind, and how many cannot be right."""

    dates: int = 0
    money: int = 0
    percentages: int = 0
    emails: int = 0
    ibans: int = 0
    with_problems: int = 0


class ListedFigure(Value):
    """A figure of the summary, and where it is; `kind` is its field in the counts."""

    kind: Kind
    value: str
    currency: str | None = None
    problem: str | None = None
    source: str
    offset: int
    text: str
    around: str


class Totals(Value):
    """Sums over all sources; what was not measured is not 0, but nothing."""

    sources: int
    unreadable: int
    characters: int | None = None
    words: int | None = None
    sentences: int | None = None
    reading_minutes: float | None = None


class SourceLine(Value):
    """A source on one line."""

    name: str
    language: str | None = None
    words: int | None = None
    reading_minutes: float | None = None
    readability: Readability | None = None
    figures: int | None = None
    unreadable: str | None = None


class Report(Value):
    """Everything, as it is kept in the file."""

    schema_version: Literal[1] = SCHEMA_VERSION
    modules: tuple[Module, ...]
    totals: Totals
    languages: tuple[LanguageShare, ...]
    terms: tuple[KeyTerm, ...]
    figures: FigureCounts
    duplicates: Listed[Pair]
    timeline: Listed[Event]
    failed: tuple[str, ...]
    """The chunks that are missing because they failed."""
    sources: tuple[SourceReport, ...]


class Summary(Value):
    """The report in less than 64 kB: what is left out of a list is counted, and stands in the report."""

    schema_version: Literal[1] = SCHEMA_VERSION
    modules: tuple[Module, ...]
    totals: Totals
    languages: tuple[LanguageShare, ...]
    terms: tuple[KeyTerm, ...]
    figures: FigureCounts
    listed_figures: Listed[ListedFigure]
    """Those with a problem first."""
    duplicates: Listed[Pair]
    timeline: Listed[Event]
    failed: Listed[str]
    sources: Listed[SourceLine]
    report: str | None = None
    """The name of the file with everything, if there is one; of the readable one, below."""
    readable: str | None = None
