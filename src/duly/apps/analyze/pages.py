"""The report for people: Markdown, in which nothing of the texts is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from duly.apps.analyze.modules.size import SizeFound
from duly.apps.analyze.report import Report, SourceReport, Totals
from duly.apps.analyze.wording import Wording

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~&])")
_MOST = 200
_MOST_FIGURES = 40
"""Of a source; the other file has all."""


def as_markdown(report: Report, asked: str = "auto") -> str:
    """The whole report on one page; in German, if that is asked for, or what most of the texts are in."""
    spoken = report.languages[0].language if asked == "auto" and report.languages else asked
    return "\n".join(_Page(Wording(spoken)).lines(report)) + "\n"


class _Page:
    """Lines in one language."""

    def __init__(self, say: Wording) -> None:
        self._say = say

    def lines(self, report: Report) -> Iterator[str]:
        yield f"# {self._say('Report')}"
        yield ""
        yield from self._totals(report.totals)
        yield from self._overall(report)
        yield from self._section("Failed", ["chunk"], ([key] for key in report.failed))
        yield f"\n## {self._say('Sources')}"
        for source in report.sources:
            yield from self._source(source)

    def _totals(self, totals: Totals) -> Iterator[str]:
        told = {
            "Sources": totals.sources,
            "Words": totals.words,
            "Minutes to read": totals.reading_minutes,
            "Sources that could not be read": totals.unreadable or None,
        }
        yield " ".join(f"{self._say(name)}: {value}." for name, value in told.items() if value is not None)

    def _overall(self, report: Report) -> Iterator[str]:
        yield from self._section(
            "Languages", ["language", "share"], ([s.language, s.share] for s in report.languages)
        )
        yield from self._section(
            "Key terms", ["term", "count", "sources"], ([t.term, t.count, t.sources] for t in report.terms)
        )
        same = self._say("identical")
        yield from self._section(
            "Nearly the same",
            ["first", "second", "likeness"],
            ([p.first, p.second, same if p.identical else p.likeness] for p in report.duplicates.items),
            report.duplicates.left_out,
        )
        yield from self._section(
            "Timeline",
            ["date", "source", "where"],
            ([e.date, e.source, e.around] for e in report.timeline.items[:_MOST]),
            report.timeline.total - min(_MOST, len(report.timeline.items)),
        )

    def _source(self, source: SourceReport) -> Iterator[str]:
        say = self._say
        yield f"\n### {_plain(source.name)}\n"
        if source.unreadable is not None:
            yield f"{say('Could not be read')}: {say(source.unreadable)}."
        if source.language is not None:
            yield f"- {say('language')}: {source.language.language} ({source.language.confidence})"
        if source.size is not None:
            yield from self._size(source.size)
        if source.terms is not None and source.terms.terms:
            yield f"- {say('terms')}: {', '.join(_plain(term.term) for term in source.terms.terms[:10])}"
        yield from self._figures(source)

    def _size(self, size: SizeFound) -> Iterator[str]:
        say = self._say
        words = say.counted(size.words, "word", "words")
        sentences = say.counted(size.sentences, "sentence", "sentences")
        yield f"- {say('size')}: {words} {say('in')} {sentences}"
        if (how := size.readability) is not None:
            yield f"- {say('readability')}: {say(how.label)} ({how.score}, {how.formula})"

    def _figures(self, source: SourceReport) -> Iterator[str]:
        rows = [
            [self._say(kind), f.value, f.currency or "", self._say(f.problem or ""), f.around]
            for kind, listed in source.figures or ()
            for f in listed.items
        ]
        shown = rows[:_MOST_FIGURES]
        left_out = sum(listed.total for _, listed in source.figures or ()) - len(shown)
        yield from self._section("", ["kind", "value", "currency", "problem", "where"], shown, left_out)

    def _section(
        self, title: str, head: Sequence[str], rows: Iterable[Sequence[object]], left_out: int = 0
    ) -> Iterator[str]:
        """A table, if there is anything in it."""
        cells = [f"| {' | '.join(_plain(str(cell)) for cell in row)} |" for row in rows]
        if not cells:
            return
        yield f"\n## {self._say(title)}\n" if title else ""
        yield f"| {' | '.join(map(self._say, head))} |"
        yield "|---" * len(head) + "|"
        yield from cells
        if left_out:
            yield f"\n{left_out} {self._say('more')}."


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
