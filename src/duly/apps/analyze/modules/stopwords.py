"""Stop words of German and English, and the local language of a text by its stop words."""

from __future__ import annotations

from functools import cached_property
from importlib import resources

from duly.apps.analyze.modules.dates import MONTH_NAMES
from duly.apps.analyze.text import WORD

_MAX_DISTANCE = 200
_MAX_READ = 20_000


def _read_lists() -> dict[str, frozenset[str]]:
    text = resources.files("duly.apps.analyze.modules").joinpath("stopwords.txt").read_text(encoding="utf-8")
    lists: dict[str, set[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif not line.startswith("#"):
            lists.setdefault(name, set()).update(line.split())
    return {name: frozenset(words) for name, words in lists.items()}


_LISTS = _read_lists()
_GERMAN, _ENGLISH = _LISTS["german"], _LISTS["english"]
_ONLY_GERMAN, _ONLY_ENGLISH = _GERMAN - _ENGLISH, _ENGLISH - _GERMAN
_ALWAYS = _LISTS["uninformative"] | _LISTS["common"] | MONTH_NAMES


def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language with the most common ones of the other; by default all."""
    return _ALWAYS | {"de": _GERMAN, "en": _ENGLISH}.get(language, _GERMAN | _ENGLISH)


class LocalLanguage:
    """Tells whether a part of a text is German or English by its stop words, without a model."""

    def __init__(self, text: str, requested: str = "auto") -> None:
        self._text = text
        self._requested = requested

    def at(self, position: int) -> str:
        """Return `de`, `en` or "": by the words nearby in the paragraph, else by the whole text."""
        return _majority_language(self._nearby(position)) or self._overall

    @cached_property
    def _overall(self) -> str:
        if self._requested in ("de", "en"):
            return self._requested
        return _majority_language(self._text[:_MAX_READ])

    def _nearby(self, position: int) -> str:
        left, right = max(0, position - _MAX_DISTANCE), position + _MAX_DISTANCE
        start = self._text.rfind("\n\n", left, position)
        end = self._text.find("\n\n", position, right)
        return self._text[start if start > 0 else left : end if end > 0 else right]


def _majority_language(text: str) -> str:
    words = [word.lower() for word in WORD.findall(text)]
    german, english = (sum(word in stops for word in words) for stops in (_ONLY_GERMAN, _ONLY_ENGLISH))
    return "" if german == english else "de" if german > english else "en"
