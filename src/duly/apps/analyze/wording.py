"""The words of the readable report, in English and German."""

from __future__ import annotations

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
    "nobody says of which currency": "die Währung ist nicht genannt",
    "German and English mean different numbers by this word": "das Wort meint auf Englisch eine andere Zahl",
}


class Wording:
    """A language to write in; what has no word there stays as it is."""

    def __init__(self, language: str) -> None:
        self._words = _GERMAN if language == "de" else {}

    def __call__(self, said: str) -> str:
        """The same in that language."""
        return self._words.get(said, said)

    def counted(self, number: int, one: str, many: str) -> str:
        """So many of something, one or more."""
        return self(f"1 {one}") if number == 1 else f"{number} {self(many)}"
