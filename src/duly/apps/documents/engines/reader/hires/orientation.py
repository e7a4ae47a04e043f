"""Pages that lie on their side or upside down: they are read the right way up.

Tesseract by itself reads what is turned to the right, and says where the words are. Of what is turned to the
left or stands on its head it is very unsure: that is turned over and read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from duly.apps.documents.engines.reader.hires import ocr
from duly.apps.documents.engines.reader.lines import Word, mean, rounded
from duly.apps.documents.engines.reader.models import Box, Found, Trouble

UNSURE = 0.6
"""Measured on scanned pages: upright ones are above 0.8, those on their head below 0.5."""
_SMALL = 2
"""How many times smaller a picture may be to tell only which way it is turned."""
_LONG = 4
"""Letters from which on a word is wider than it is high."""


@dataclass(frozen=True)
class Upright:
    """A picture the right way up, and its words."""

    picture: Any
    words: Sequence[Word]
    quarters: int = 0
    """How often it was turned to the left by a quarter."""

    def turned(self, quarters: int) -> Upright:
        """The same, turned to the left."""
        picture = self.picture.rotate(90 * quarters, expand=True)
        words = [replace(word, box=_turned(word.box, quarters)) for word in self.words]
        return Upright(picture, words, self.quarters + quarters)

    def as_it_was(self, element: Found) -> Found:
        """An element where it is on the picture that was given."""
        box = element.box and rounded(_turned(element.box, -self.quarters))
        return replace(element, box=box)


def upright(picture: Any, until: float) -> Upright:
    """Read a picture, whichever way it is turned."""
    seen = Upright(picture, ocr.words(picture, until))
    if seen.words and _sure(seen.words) < UNSURE:
        with suppress(Trouble):  # then it stays as it was found
            seen = _turned_over(seen, until)
    return seen.turned(1) if _lies(seen) else seen


def _turned_over(seen: Upright, until: float) -> Upright:
    picture = seen.picture.rotate(180)
    small = picture.resize(tuple(max(1, side // _SMALL) for side in picture.size))
    if _sure(ocr.words(small, until)) < _sure(seen.words):
        return seen
    over = Upright(picture, ocr.words(picture, until), 2)
    return over if _sure(over.words) > max(UNSURE, _sure(seen.words)) else seen


def _sure(words: Sequence[Word]) -> float:
    return mean(word.confidence for word in words) or 0.0


def _lies(seen: Upright) -> bool:
    width, height = seen.picture.size
    boxes = [word.box for word in seen.words if len(word.text) >= _LONG]
    tall = sum((box[3] - box[1]) * height > (box[2] - box[0]) * width for box in boxes)
    return bool(2 * tall > len(boxes))


def _turned(box: Box, quarters: int) -> Box:
    for _ in range(quarters % 4):
        left, top, right, bottom = box
        box = (top, 1 - right, bottom, 1 - left)
    return box
