"""From the parts of all chunks to one report, and from that to its summary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import get_args

from duly.apps.analyze.modules.figures import Figure
from duly.apps.analyze.modules.language import LanguageShare
from duly.apps.analyze.modules.likeness import alike
from duly.apps.analyze.overall import overall_terms
from duly.apps.analyze.report import (
    Event,
    FigureCounts,
    Findings,
    Kind,
    ListedFigure,
    Part,
    Report,
    SourceLine,
    SourceReport,
    Summary,
    Totals,
)
from duly.apps.analyze.request import AnalyzeRequest
from duly.apps.analyze.values import Listed

MOST_SUMMARY = 60_000
"""Bytes of a summary; a little less than what is promised."""
MOST_SHOWN = 50
_MOST_PAIRS = 1_000
_MOST_EVENTS = 10_000
_MOST_LANGUAGES = 10
_TRACE = 0.01
_KINDS: tuple[Kind, ...] = get_args(Kind)


def reported(request: AnalyzeRequest, parts: Iterable[Part]) -> Report:
    """Everything that was found, in the order of the request."""
    by_source: defaultdict[str, list[Part]] = defaultdict(list)
    for part in parts:
        by_source[part.source].append(part)
    sources = tuple(_source(source.name, by_source[source.name]) for source in request.sources)
    pairs = alike({one.name: one.likeness for one in sources if one.likeness is not None})
    return Report(
        modules=request.modules,
        totals=_totals(sources),
        languages=_languages(sources),
        terms=overall_terms(sources, pairs),
        figures=_counts(sources),
        duplicates=Listed.first(_MOST_PAIRS, pairs),
        timeline=Listed.first(_MOST_EVENTS, _timeline(sources)),
        failed=tuple(_failed(request, sources)),
        sources=sources,
    )


def summed_up(report: Report, *, files: tuple[str | None, str | None] = (None, None)) -> Summary:
    """What a page shows of a report, with the names of its files."""
    summary = Summary(
        modules=report.modules,
        totals=report.totals,
        languages=report.languages,
        terms=report.terms,
        figures=report.figures,
        listed_figures=_listed_figures(report.sources),
        duplicates=report.duplicates.shorter(MOST_SHOWN),
        timeline=report.timeline.shorter(MOST_SHOWN),
        failed=Listed.first(MOST_SHOWN, report.failed),
        sources=Listed(items=tuple(map(_line, report.sources))),
        report=files[0],
        readable=files[1],
    )
    while _size(summary) > MOST_SUMMARY:
        summary = _shorter(summary)
    return summary


def _source(name: str, parts: Sequence[Part]) -> SourceReport:
    found = {
        field: value
        for part in parts
        for field in Findings.model_fields
        if (value := getattr(part, field)) is not None
    }
    return SourceReport(name=name, **found)


def _failed(request: AnalyzeRequest, sources: Sequence[SourceReport]) -> Iterable[str]:
    by_name = {one.name: one for one in sources}
    for piece in request.pieces:
        found = by_name[piece.source.name]
        if getattr(found, piece.module) is None and found.unreadable is None:
            yield piece.key


def _totals(sources: Sequence[SourceReport]) -> Totals:
    sizes = [one.size for one in sources if one.size is not None]
    return Totals(
        sources=len(sources),
        unreadable=sum(one.unreadable is not None for one in sources),
        characters=sum(size.characters for size in sizes) if sizes else None,
        words=sum(size.words for size in sizes) if sizes else None,
        sentences=sum(size.sentences for size in sizes) if sizes else None,
        reading_minutes=round(sum(size.reading_minutes for size in sizes), 1) if sizes else None,
    )


def _languages(sources: Sequence[SourceReport]) -> tuple[LanguageShare, ...]:
    letters: Counter[str] = Counter()
    for one in sources:
        for part in one.language.mix if one.language else ():
            letters[part.language] += round(part.share * (one.language.letters if one.language else 0))
    total = letters.total() or 1
    enough = (name for name in letters if letters[name] >= _TRACE * total)
    order = sorted(enough, key=lambda name: (-letters[name], name))[:_MOST_LANGUAGES]
    return tuple(LanguageShare(language=name, share=round(letters[name] / total, 3)) for name in order)


def _counts(sources: Sequence[SourceReport]) -> FigureCounts:
    counts: Counter[str] = Counter()
    for one in sources:
        for kind in _KINDS if one.figures else ():
            listed: Listed[Figure] = getattr(one.figures, kind)
            counts[kind] += listed.total
            counts["with_problems"] += sum(figure.problem is not None for figure in listed.items)
    return FigureCounts(**counts)


def _listed_figures(sources: Sequence[SourceReport]) -> Listed[ListedFigure]:
    """The first of all, those with a problem before the others; as in the request and in the text."""
    found = [(one.name, kind, figure) for one in sources for kind, figure in _in_order(one)]
    doubtful = [each for each in found if each[2].problem is not None]
    fine = (each for each in found if each[2].problem is None)
    shown = [_listed_figure(*each) for each in islice(chain(doubtful, fine), MOST_SHOWN)]
    total = sum(getattr(one.figures, kind).total for one in sources if one.figures for kind in _KINDS)
    return Listed(items=tuple(shown), left_out=total - len(shown))


def _in_order(one: SourceReport) -> list[tuple[Kind, Figure]]:
    found = [(kind, figure) for kind in _KINDS if one.figures for figure in getattr(one.figures, kind).items]
    return sorted(found, key=lambda each: each[1].offset)


def _listed_figure(source: str, kind: Kind, figure: Figure) -> ListedFigure:
    return ListedFigure(source=source, kind=kind, **figure.model_dump())


def _timeline(sources: Sequence[SourceReport]) -> list[Event]:
    events = [
        Event(date=found.value, source=one.name, offset=found.offset, text=found.text, around=found.around)
        for one in sources
        for found in (one.figures.dates.items if one.figures else ())
        if found.problem is None
    ]
    # The sort is stable: on the same day, the order of the request and of the text.
    return sorted(events, key=lambda event: event.date)


def _line(one: SourceReport) -> SourceLine:
    figures = None
    if one.figures is not None:
        figures = sum(getattr(one.figures, kind).total for kind in _KINDS)
    return SourceLine(
        name=one.name,
        language=one.language.language if one.language else None,
        words=one.size.words if one.size else None,
        reading_minutes=one.size.reading_minutes if one.size else None,
        readability=one.size.readability if one.size else None,
        figures=figures,
        unreadable=one.unreadable,
    )


def _size(summary: Summary) -> int:
    return len(summary.model_dump_json().encode())


def _shorter(summary: Summary) -> Summary:
    """Without a tenth of what takes the most room."""
    fields = ("listed_figures", "duplicates", "timeline", "failed", "sources")
    sizes = {field: len(getattr(summary, field).model_dump_json()) for field in fields}
    longest = max(fields, key=lambda field: sizes[field])
    listed: Listed[object] = getattr(summary, longest)
    return summary.model_copy(update={longest: listed.shorter(len(listed.items) * 9 // 10)})
