"""Whether German or English is spoken at a place of a text, by its smallest words. No model is asked."""

from __future__ import annotations

from functools import cached_property

from duly.apps.analyze.modules.stopwords import ENGLISH, GERMAN
from duly.apps.analyze.text import WORD

_NEAR = 200
_READ = 20_000
_ONLY_GERMAN, _ONLY_ENGLISH = GERMAN - ENGLISH, ENGLISH - GERMAN


class Surroundings:
    """A text that can be asked what is spoken where; `asked` is what the caller says of the whole."""

    def __init__(self, text: str, asked: str = "auto") -> None:
        self._text = text
        self._asked = asked

    def spoken(self, place: int) -> str:
        """`de`, `en`, or nothing: by the words of the same paragraph nearby, else by all."""
        return _majority(self._near(place)) or self._of_all

    @cached_property
    def _of_all(self) -> str:
        return self._asked if self._asked in ("de", "en") else _majority(self._text[:_READ])

    def _near(self, place: int) -> str:
        left, right = max(0, place - _NEAR), place + _NEAR
        gap = self._text.rfind("\n\n", left, place)
        end = self._text.find("\n\n", place, right)
        return self._text[gap if gap > 0 else left : end if end > 0 else right]


def _majority(text: str) -> str:
    words = [word.lower() for word in WORD.findall(text)]
    german, english = (sum(word in those for word in words) for those in (_ONLY_GERMAN, _ONLY_ENGLISH))
    return "" if german == english else "de" if german > english else "en"
