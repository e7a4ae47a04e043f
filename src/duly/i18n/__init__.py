"""Texts for people in their language: one gettext catalogue per language, `locale/<language>.po`.

A text is looked up by its message id, as in `messages("de").text("status.failed")`. Pages, console, mails and
explanations use the same catalogues, so a status has one word per language. Gaps are written `{name}`. A
message with plural forms is chosen by the value `n`, a number or its text; "1,000+" is plural.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from gettext import c2py
from importlib import resources
from pathlib import Path

LANGUAGES = ("en", "de")
"""The first is the fallback."""
Text = str | tuple[str, ...]
"""A text, or its plural forms."""


class Messages(Mapping[str, Text]):
    """The texts of one language by message id."""

    def __init__(self, language: str, texts: Mapping[str, Text], plural_expression: str) -> None:
        self.language = language
        self._texts = texts
        self._plural = c2py(plural_expression)

    def __getitem__(self, message_id: str) -> Text:
        return self._texts[message_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, message_id: str, /, **values: object) -> str:
        """Return the text with its gaps filled."""
        text = self._texts[message_id]
        if isinstance(text, tuple):
            number = str(values.get("n"))
            text = text[self._plural(int(number) if number.isdecimal() else 2)]
        return text.format_map({name: _plain(value) for name, value in values.items()}) if values else text

    def extended(self, texts: Mapping[str, Text]) -> Messages:
        """Return these messages together with those of an application."""
        extended = Messages.__new__(Messages)
        extended.language, extended._plural = self.language, self._plural
        extended._texts = {**self._texts, **texts}
        return extended


@cache
def messages(language: str) -> Messages:
    """Return the messages of a language; English where there is no catalogue of it."""
    known = language if language in LANGUAGES else LANGUAGES[0]
    return read_catalogue(Path(str(resources.files(__name__))) / "locale" / f"{known}.po", known)


def read_catalogue(path: Path, language: str) -> Messages:
    """Read a catalogue; applications can have their own."""
    from babel.messages.pofile import read_po  # not needed until a text is shown

    with path.open("rb") as file:
        catalogue = read_po(file, locale=language, abort_invalid=True)
    texts: dict[str, Text] = {}
    for message in catalogue:
        if message.id:
            message_id = message.id if isinstance(message.id, str) else message.id[0]
            text = message.string or ""
            texts[message_id] = text if isinstance(text, str) else tuple(text)
    return Messages(language, texts, catalogue.plural_expr)


def _plain(value: object) -> object:
    """Return the value as a number or a string: no format specification reaches into objects."""
    return value if isinstance(value, int | float) else str(value)
