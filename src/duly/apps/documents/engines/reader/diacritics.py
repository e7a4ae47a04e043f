"""Umlauts that were set as two signs, as old fonts of TeX do: a letter, and the dots above it.

In the text of a PDF the dots are anywhere near; only where they are on the page tells whose they are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from duly.apps.documents.engines.reader.models import Box

Char = tuple[str, Box]
"""A character, and its left, bottom, right and top on the page."""
MARKS = {"\u00a8": "\u0308", "\u00b4": "\u0301"}
_NEAR = 250
"""Characters between a letter and its mark: they may be a line apart."""
_ABOVE = 0.7
"""How far above a letter its mark may be, as a share of the letter's height."""
_TOUCH = 0.2
"""Between two letters of a word, as a share of their height."""


def composed(chars: Sequence[Char]) -> list[Char]:
    """The same characters, each letter with its mark; a word that a mark had divided is one again."""
    whole: list[Char | None] = list(chars)
    for at, (char, _) in enumerate(chars):
        if char in MARKS and (below := _below(chars, at)) is not None:
            letter, box = chars[below]
            whole[below] = (_joined(letter, char), box)
            whole[at] = None
            _close(whole, at)
    return [char for char in whole if char is not None]


def _joined(letter: str, mark: str) -> str:
    return unicodedata.normalize("NFC", letter + MARKS[mark])


def _below(chars: Sequence[Char], at: int) -> int | None:
    mark, box = chars[at]
    middle = (box[0] + box[2]) / 2
    found = [
        (abs(middle - (left + right) / 2), near)
        for near in range(max(0, at - _NEAR), min(len(chars), at + _NEAR))
        for letter, (left, bottom, right, top) in (chars[near],)
        if left <= middle <= right and letter.isalpha() and len(_joined(letter, mark)) == 1
        if (bottom + top) / 2 < box[1] < top + _ABOVE * (top - bottom)
    ]
    return min(found)[1] if found else None


def _close(whole: list[Char | None], at: int) -> None:
    """Take away the spaces around a mark that is gone, if what is on both sides is one word."""
    before, after = _side(whole, range(at - 1, -1, -1)), _side(whole, range(at + 1, len(whole)))
    if before is None or after is None:
        return
    (_, one), (_, other) = (whole[before] or ("", (0, 0, 0, 0)), whole[after] or ("", (0, 0, 0, 0)))
    height = max(one[3] - one[1], other[3] - other[1])
    level = min(one[3], other[3]) > max(one[1], other[1])
    if level and -height < other[0] - one[2] < _TOUCH * height:
        whole[before + 1 : after] = [None] * (after - before - 1)


def _side(whole: Sequence[Char | None], places: Iterator[int] | range) -> int | None:
    """The nearest character that is to be seen."""
    return next((place for place in places if (found := whole[place]) and not found[0].isspace()), None)
