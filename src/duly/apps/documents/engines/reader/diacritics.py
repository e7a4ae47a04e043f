"""Compose umlauts that were typeset as two characters, a letter and its dots, as old TeX fonts do.

In the text layer the dots may be far from their letter; only the position on the page relates them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from duly.apps.documents.engines.reader.models import Box

Char = tuple[str, Box]
"""A character, and its left, bottom, right and top on the page."""
COMBINING = {"\u00a8": "\u0308", "\u00b4": "\u0301"}
"""The combining mark for each spacing mark."""
_MAX_DISTANCE = 250
"""Characters between a letter and its mark: they may be a line apart."""
_MAX_ABOVE = 0.7
"""Distance of a mark above its letter, as a share of the letter's height."""
_MAX_LETTER_GAP = 0.2
"""Gap between two letters of a word, as a share of their height."""


def compose(chars: Sequence[Char]) -> list[Char]:
    """Compose letters with their marks, and rejoin words that a mark had split."""
    composed: list[Char | None] = list(chars)
    for index, (char, _) in enumerate(chars):
        if char in COMBINING and (base := _find_letter(chars, index)) is not None:
            letter, box = chars[base]
            composed[base] = (_combine(letter, char), box)
            composed[index] = None
            _close_gap(composed, index)
    return [char for char in composed if char is not None]


def _combine(letter: str, mark: str) -> str:
    return unicodedata.normalize("NFC", letter + COMBINING[mark])


def _find_letter(chars: Sequence[Char], index: int) -> int | None:
    mark, box = chars[index]
    middle = (box[0] + box[2]) / 2
    candidates = [
        (abs(middle - (left + right) / 2), near)
        for near in range(max(0, index - _MAX_DISTANCE), min(len(chars), index + _MAX_DISTANCE))
        for letter, (left, bottom, right, top) in (chars[near],)
        if left <= middle <= right and letter.isalpha() and len(_combine(letter, mark)) == 1
        if (bottom + top) / 2 < box[1] < top + _MAX_ABOVE * (top - bottom)
    ]
    return min(candidates)[1] if candidates else None


def _close_gap(chars: list[Char | None], index: int) -> None:
    """Remove the spaces around a removed mark if both sides belong to one word."""
    before = _first_visible(chars, range(index - 1, -1, -1))
    after = _first_visible(chars, range(index + 1, len(chars)))
    if before is None or after is None:
        return
    (_, one), (_, other) = (chars[before] or ("", (0, 0, 0, 0)), chars[after] or ("", (0, 0, 0, 0)))
    height = max(one[3] - one[1], other[3] - other[1])
    same_line = min(one[3], other[3]) > max(one[1], other[1])
    if same_line and -height < other[0] - one[2] < _MAX_LETTER_GAP * height:
        chars[before + 1 : after] = [None] * (after - before - 1)


def _first_visible(chars: Sequence[Char | None], indexes: Iterable[int]) -> int | None:
    return next((i for i in indexes if (char := chars[i]) and not char[0].isspace()), None)
