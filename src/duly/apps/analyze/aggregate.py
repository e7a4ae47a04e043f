"""Aggregate the parts of all chunks into the report, and the report into its summary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from duly.apps.analyze.modules.figures import Figure
from duly.apps.analyze.modules.key_terms import Term, usual_spelling
from duly.apps.analyze.modules.language import MAX_LANGUAGES, LanguageShare
from duly.apps.analyze.modules.similarity import SimilarPair, find_similar
from duly.apps.analyze.report import (
    FigureCounts,
    FigureKind,
    Findings,
    KeyTerm,
    ListedFigure,
    Part,
    Report,
    ReportTotals,
    SourceLine,
    SourceReport,
    Summary,
    TimelineEvent,
)
from duly.apps.analyze.request import AnalyzeRequest
from duly.apps.analyze.values import Listed

MAX_SUMMARY_BYTES = 60_000
"""A little below the documented limit."""
MAX_LISTED = 50
_MAX_PAIRS = 1_000
_MAX_EVENTS = 10_000
_MAX_TERMS = 30
_MIN_LANGUAGE_SHARE = 0.01
_FIGURE_KINDS: tuple[FigureKind, ...] = get_args(FigureKind)
_LISTS = ("listed_figures", "duplicates", "timeline", "failed", "sources")


def build_report(request: AnalyzeRequest, parts: Iterable[Part]) -> Report:
    """Build the report, with sources in the order of the request."""
    by_source: defaultdict[str, list[Part]] = defaultdict(list)
    for part in parts:
        by_source[part.source].append(part)
    sources = tuple(_merge_parts(source.name, by_source[source.name]) for source in request.sources)
    pairs = find_similar({source.name: source.likeness for source in sources if source.likeness})
    return Report(
        modules=request.modules,
        totals=_totals(sources),
        languages=_languages(sources),
        terms=_overall_terms(sources, pairs),
        figures=_count_figures(sources),
        duplicates=Listed.first(_MAX_PAIRS, pairs),
        timeline=Listed.first(_MAX_EVENTS, _timeline(sources)),
        failed=tuple(_failed_chunks(request, sources)),
        sources=sources,
    )


def summarize(report: Report, *, files: tuple[str | None, str | None] = (None, None)) -> Summary:
    """Summarize a report; `files` are the names of the report and of its Markdown form."""
    summary = Summary(
        modules=report.modules,
        totals=report.totals,
        languages=report.languages,
        terms=report.terms,
        figures=report.figures,
        listed_figures=_list_figures(report.sources),
        duplicates=report.duplicates.truncate(MAX_LISTED),
        timeline=report.timeline.truncate(MAX_LISTED),
        failed=Listed.first(MAX_LISTED, report.failed),
        sources=Listed(items=tuple(map(_source_line, report.sources))),
        report=files[0],
        readable=files[1],
    )
    while len(summary.model_dump_json().encode()) > MAX_SUMMARY_BYTES:
        summary = _shorten(summary)
    return summary


def _merge_parts(name: str, parts: Sequence[Part]) -> SourceReport:
    findings = {
        field: value
        for part in parts
        for field in Findings.model_fields
        if (value := getattr(part, field)) is not None
    }
    return SourceReport(name=name, **findings)


def _failed_chunks(request: AnalyzeRequest, sources: Sequence[SourceReport]) -> Iterator[str]:
    by_name = {source.name: source for source in sources}
    for chunk in request.chunks:
        source = by_name[chunk.source.name]
        if getattr(source, chunk.module) is None and source.unreadable is None:
            yield chunk.key


def _totals(sources: Sequence[SourceReport]) -> ReportTotals:
    sizes = [source.size for source in sources if source.size is not None]
    return ReportTotals(
        sources=len(sources),
        unreadable=sum(source.unreadable is not None for source in sources),
        characters=sum(size.characters for size in sizes) if sizes else None,
        words=sum(size.words for size in sizes) if sizes else None,
        sentences=sum(size.sentences for size in sizes) if sizes else None,
        reading_minutes=round(sum(size.reading_minutes for size in sizes), 1) if sizes else None,
    )


def _languages(sources: Sequence[SourceReport]) -> tuple[LanguageShare, ...]:
    letters: Counter[str] = Counter()
    for detected in (source.language for source in sources if source.language):
        for share in detected.mix:
            letters[share.language] += round(share.share * detected.letters)
    total = letters.total() or 1
    frequent = (name for name in letters if letters[name] >= _MIN_LANGUAGE_SHARE * total)
    order = sorted(frequent, key=lambda name: (-letters[name], name))[:MAX_LANGUAGES]
    return tuple(LanguageShare(language=name, share=round(letters[name] / total, 3)) for name in order)


def _overall_terms(sources: Sequence[SourceReport], pairs: Iterable[SimilarPair]) -> tuple[KeyTerm, ...]:
    """Rank terms by the sum of their scores in each source, so that a long text does not outvote the others.

    Similar sources count once, with the highest score of each term.
    """
    counts: Counter[str] = Counter()
    scores: defaultdict[str, float] = defaultdict(float)
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for group in _group_terms(sources, pairs):
        for key, term in group.items():
            counts[key] += term.count
            scores[key] += term.score
            spellings[key][term.term] += 1
    order = sorted(scores, key=lambda key: (-scores[key], key))[:_MAX_TERMS]
    return tuple(
        KeyTerm(
            term=usual_spelling(spellings[key]),
            count=counts[key],
            sources=spellings[key].total(),
            score=round(scores[key] / (scores[order[0]] or 1), 3),
        )
        for key in order
    )


def _group_terms(sources: Sequence[SourceReport], pairs: Iterable[SimilarPair]) -> Iterable[dict[str, Term]]:
    """Return the terms of each group of similar sources, by their lower case form."""
    groups: dict[str, dict[str, Term]] = {}
    representatives = _representatives(sources, pairs)
    for source in sources:
        group = groups.setdefault(representatives[source.name], {})
        for term in source.terms.terms if source.terms else ():
            known = group.get(term.term.lower())
            if known is None or (term.score, term.count) > (known.score, known.count):
                group[term.term.lower()] = term
    return groups.values()


def _representatives(sources: Sequence[SourceReport], pairs: Iterable[SimilarPair]) -> dict[str, str]:
    """Return the first similar source for each source; itself if there is none before it."""
    similar: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        similar[pair.first].add(pair.second)
        similar[pair.second].add(pair.first)
    representatives: dict[str, str] = {}
    for source in sources:
        representative = representatives.get(source.name, source.name)
        for name in (source.name, *similar[source.name]):
            representatives.setdefault(name, representative)
    return representatives


def _count_figures(sources: Sequence[SourceReport]) -> FigureCounts:
    counts: Counter[str] = Counter()
    for figures in (source.figures for source in sources if source.figures):
        for kind in _FIGURE_KINDS:
            listed: Listed[Figure] = getattr(figures, kind)
            counts[kind] += listed.total
            counts["with_problems"] += sum(figure.problem is not None for figure in listed.items)
    return FigureCounts(**counts)


def _list_figures(sources: Sequence[SourceReport]) -> Listed[ListedFigure]:
    """List figures with a problem first, then in the order of the request and of the text."""
    figures = [
        (source.name, kind, figure) for source in sources for kind, figure in _figures_in_order(source)
    ]
    figures.sort(key=lambda entry: entry[2].problem is None)  # stable
    listed = [
        ListedFigure(source=source, kind=kind, **figure.model_dump())
        for source, kind, figure in figures[:MAX_LISTED]
    ]
    total = sum(_figure_total(source) or 0 for source in sources)
    return Listed(items=tuple(listed), left_out=total - len(listed))


def _figures_in_order(source: SourceReport) -> list[tuple[FigureKind, Figure]]:
    figures = [
        (kind, figure)
        for kind in _FIGURE_KINDS
        if source.figures
        for figure in getattr(source.figures, kind).items
    ]
    return sorted(figures, key=lambda entry: entry[1].offset)


def _figure_total(source: SourceReport) -> int | None:
    if source.figures is None:
        return None
    totals: Iterator[int] = (listed.total for _, listed in source.figures)
    return sum(totals)


def _timeline(sources: Sequence[SourceReport]) -> list[TimelineEvent]:
    events = [
        TimelineEvent(
            date=figure.value,
            source=source.name,
            offset=figure.offset,
            text=figure.text,
            around=figure.around,
        )
        for source in sources
        if source.figures
        for figure in source.figures.dates.items
        if figure.problem is None
    ]
    # The sort is stable: events of a day keep the order of the request and of the text.
    return sorted(events, key=lambda event: event.date)


def _source_line(source: SourceReport) -> SourceLine:
    size = source.size
    return SourceLine(
        name=source.name,
        language=source.language.language if source.language else None,
        words=size.words if size else None,
        reading_minutes=size.reading_minutes if size else None,
        readability=size.readability if size else None,
        figures=_figure_total(source),
        unreadable=source.unreadable,
    )


def _shorten(summary: Summary) -> Summary:
    """Remove a tenth of the longest list."""
    longest = max(_LISTS, key=lambda field: len(getattr(summary, field).model_dump_json()))
    listed: Listed[object] = getattr(summary, longest)
    return summary.model_copy(update={longest: listed.truncate(len(listed.items) * 9 // 10)})
