"""The report as Markdown, in English or German; the texts of sources are escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from duly.apps.analyze.modules.statistics import TextStatistics
from duly.apps.analyze.report import Report, ReportTotals, SourceReport

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~&])")
_MAX_EVENTS = 200
_MAX_FIGURES = 40
"""Figures of a source; the JSON report has all."""
_GERMAN = {
    "Report": "Bericht",
    "Sources": "Texte",
    "Words": "Wörter",
    "Minutes to read": "Lesezeit in Minuten",
    "Sources that could not be read": "Texte, die nicht gelesen werden konnten",
    "Could not be read": "Konnte nicht gelesen werden",
    "Languages": "Sprachen",
    "Key terms": "Wichtige Begriffe",
    "Nearly the same": "Texte, die sich gleichen",
    "Timeline": "Zeitleiste",
    "Failed": "Fehlgeschlagen",
    "language": "Sprache",
    "size": "Umfang",
    "readability": "Lesbarkeit",
    "terms": "Begriffe",
    "share": "Anteil",
    "term": "Begriff",
    "count": "Anzahl",
    "sources": "Texte",
    "first": "erster",
    "second": "zweiter",
    "likeness": "Ähnlichkeit",
    "identical": "gleich",
    "date": "Datum",
    "source": "Text",
    "where": "Fundstelle",
    "chunk": "Teilschritt",
    "kind": "Art",
    "value": "Wert",
    "currency": "Währung",
    "problem": "fraglich, weil",
    "dates": "Datum",
    "money": "Betrag",
    "percentages": "Prozentsatz",
    "emails": "E-Mail",
    "ibans": "IBAN",
    "more": "weitere",
    "in": "in",
    "1 word": "1 Wort",
    "words": "Wörter",
    "1 sentence": "1 Satz",
    "sentences": "Sätzen",
    "very easy": "sehr leicht",
    "easy": "leicht",
    "fairly easy": "ziemlich leicht",
    "plain": "mittel",
    "fairly difficult": "ziemlich schwer",
    "difficult": "schwer",
    "very difficult": "sehr schwer",
    "a PDF file": "eine PDF-Datei",
    "a ZIP or Office file": "eine ZIP- oder Office-Datei",
    "an old Office file": "eine alte Office-Datei",
    "an image": "ein Bild",
    "a compressed file": "eine komprimierte Datei",
    "binary content": "binärer Inhalt",
    "an HTML page nested too deeply": "eine zu tief verschachtelte HTML-Seite",
    "neither UTF-8 nor Windows-1252": "weder UTF-8 noch Windows-1252",
    "the upload is gone": "die hochgeladene Datei ist nicht mehr da",
    "the upload is damaged": "die hochgeladene Datei ist beschädigt",
    "no calendar has this day": "diesen Tag hat kein Kalender",
    "day and month may be the other way round": "Tag und Monat könnten vertauscht sein",
    "the check digits are wrong": "die Prüfziffern sind falsch",
    "no country has this code": "diesen Code hat kein Land",
    "the letters behind it are not understood": "die Buchstaben dahinter sind unklar",
    "the mark may be for thousands or for decimals": "das Zeichen kann Tausender oder Dezimalen trennen",
    "the currency is not stated": "die Währung ist nicht genannt",
    "German and English mean different numbers by this word": "das Wort meint auf Englisch eine andere Zahl",
}


def to_markdown(report: Report, language: str = "auto") -> str:
    """Return the report as Markdown; with `auto` in the main language of the sources."""
    if language == "auto" and report.languages:
        language = report.languages[0].language
    return "\n".join(_MarkdownWriter(_GERMAN if language == "de" else {}).lines(report)) + "\n"


class _MarkdownWriter:
    """Yields the lines of a report; texts without a translation stay English."""

    def __init__(self, translations: dict[str, str]) -> None:
        self._translations = translations

    def _text(self, english: str) -> str:
        return self._translations.get(english, english)

    def _count(self, number: int, singular: str, plural: str) -> str:
        return self._text(f"1 {singular}") if number == 1 else f"{number} {self._text(plural)}"

    def lines(self, report: Report) -> Iterator[str]:
        yield f"# {self._text('Report')}"
        yield ""
        yield from self._totals(report.totals)
        yield from self._overall(report)
        yield from self._table("Failed", ["chunk"], ([key] for key in report.failed))
        yield f"\n## {self._text('Sources')}"
        for source in report.sources:
            yield from self._source(source)

    def _totals(self, totals: ReportTotals) -> Iterator[str]:
        values = {
            "Sources": totals.sources,
            "Words": totals.words,
            "Minutes to read": totals.reading_minutes,
            "Sources that could not be read": totals.unreadable or None,
        }
        yield " ".join(f"{self._text(name)}: {value}." for name, value in values.items() if value is not None)

    def _overall(self, report: Report) -> Iterator[str]:
        yield from self._table(
            "Languages", ["language", "share"], ([s.language, s.share] for s in report.languages)
        )
        yield from self._table(
            "Key terms", ["term", "count", "sources"], ([t.term, t.count, t.sources] for t in report.terms)
        )
        identical = self._text("identical")
        yield from self._table(
            "Nearly the same",
            ["first", "second", "likeness"],
            ([p.first, p.second, identical if p.identical else p.likeness] for p in report.duplicates.items),
            report.duplicates.left_out,
        )
        timeline = report.timeline.truncate(_MAX_EVENTS)
        yield from self._table(
            "Timeline",
            ["date", "source", "where"],
            ([e.date, e.source, e.around] for e in timeline.items),
            timeline.left_out,
        )

    def _source(self, source: SourceReport) -> Iterator[str]:
        text = self._text
        yield f"\n### {_escape(source.name)}\n"
        if source.unreadable is not None:
            yield f"{text('Could not be read')}: {text(source.unreadable)}."
        if source.language is not None:
            yield f"- {text('language')}: {source.language.language} ({source.language.confidence})"
        if source.size is not None:
            yield from self._statistics(source.size)
        if source.terms is not None and source.terms.terms:
            yield f"- {text('terms')}: {', '.join(_escape(term.term) for term in source.terms.terms[:10])}"
        yield from self._figures(source)

    def _statistics(self, size: TextStatistics) -> Iterator[str]:
        text = self._text
        words = self._count(size.words, "word", "words")
        sentences = self._count(size.sentences, "sentence", "sentences")
        yield f"- {text('size')}: {words} {text('in')} {sentences}"
        if (readability := size.readability) is not None:
            label = text(readability.label)
            yield f"- {text('readability')}: {label} ({readability.score}, {readability.formula})"

    def _figures(self, source: SourceReport) -> Iterator[str]:
        rows = [
            [self._text(kind), f.value, f.currency or "", self._text(f.problem or ""), f.around]
            for kind, listed in source.figures or ()
            for f in listed.items
        ][:_MAX_FIGURES]
        left_out = sum(listed.total for _, listed in source.figures or ()) - len(rows)
        yield from self._table("", ["kind", "value", "currency", "problem", "where"], rows, left_out)

    def _table(
        self, title: str, head: Sequence[str], rows: Iterable[Sequence[object]], left_out: int = 0
    ) -> Iterator[str]:
        """Yield a section with a table, or nothing without rows."""
        lines = [f"| {' | '.join(_escape(str(cell)) for cell in row)} |" for row in rows]
        if not lines:
            return
        yield f"\n## {self._text(title)}\n" if title else ""
        yield f"| {' | '.join(map(self._text, head))} |"
        yield "|---" * len(head) + "|"
        yield from lines
        if left_out:
            yield f"\n{left_out} {self._text('more')}."


def _escape(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
