"""Words of a page by their position, grouped into lines and paragraphs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from duly.apps.documents.engines.reader.models import Box, ReadElement

_LIST_ITEM = re.compile(r"(?:[•◦▪■●‣⁃*–-]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+\S")  # noqa: RUF001 - typeset dashes
_WORD = re.compile(r"\w+")
_HEADING_HEIGHT = 1.2
"""TextLine height of a heading, relative to the median."""
_MAX_HEADING_LENGTH = 200
_MAX_LINE_GAP = 0.75
"""Between two lines of a paragraph, relative to the median height."""


@dataclass(frozen=True)
class Word:
    """A word, its position, and the number of its line."""

    text: str
    box: Box
    line: int = 0
    confidence: float | None = None


@dataclass(frozen=True)
class TextLine:
    """Words on one line."""

    text: str
    box: Box
    confidence: float | None = None

    @property
    def height(self) -> float:
        """The height as a share of the page."""
        return self.box[3] - self.box[1]


def enclosing_box(boxes: Iterable[Box]) -> Box:
    """Return the smallest box that contains all boxes."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def clip_box(box: Box) -> Box:
    """Clip a box to the page, and round it to four digits."""
    left, top, right, bottom = (round(min(1.0, max(0.0, side)), 4) for side in box)
    return left, top, right, bottom


def mean_confidence(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else None


def group_lines(words: Iterable[Word]) -> list[TextLine]:
    """Group words by their line number."""
    grouped = (list(group) for _, group in groupby(words, key=lambda word: word.line))
    return [
        TextLine(
            " ".join(w.text for w in group),
            enclosing_box(w.box for w in group),
            mean_confidence(w.confidence for w in group),
        )
        for group in grouped
    ]


def join_lines(texts: Sequence[str]) -> str:
    """Join lines, and the halves of words that are hyphenated at the end of a line."""
    joined = ""
    for text in texts:
        if joined.endswith("-") and joined[-2:-1].isalpha() and text[:1].islower():
            joined = joined[:-1] + text
        else:
            joined = f"{joined} {text}" if joined else text
    return joined


def group_paragraphs(lines: Sequence[TextLine]) -> Iterator[ReadElement]:
    """Group lines that are close, of similar height and below one another."""
    if not lines:
        return
    usual = median(line.height for line in lines)
    group: list[TextLine] = []
    for line in lines:
        if group and not _continues(group[-1], line, usual):
            yield _paragraph(group, usual)
            group = []
        group.append(line)
    yield _paragraph(group, usual)


def _continues(last: TextLine, line: TextLine, usual: float) -> bool:
    if _is_beside(last, line):
        return True
    near = -usual < line.box[1] - last.box[3] < _MAX_LINE_GAP * usual
    similar = 0.8 < (line.height or 1) / (last.height or 1) < 1.25
    below = line.box[0] < last.box[2] and last.box[0] < line.box[2]
    return near and similar and below and not _LIST_ITEM.match(line.text)


def _is_beside(last: TextLine, line: TextLine) -> bool:
    """Return whether it continues the same line in another size: an exponent, a formula."""
    common = min(last.box[3], line.box[3]) - max(last.box[1], line.box[1])
    return common > 0.4 * min(last.height, line.height) and -0.01 < line.box[0] - last.box[2] < 0.02


def _paragraph(group: Sequence[TextLine], usual: float) -> ReadElement:
    text = join_lines([line.text for line in group])
    return ReadElement(
        paragraph_type(text, is_large=group[0].height > _HEADING_HEIGHT * usual),
        text,
        clip_box(enclosing_box(line.box for line in group)),
        mean_confidence(line.confidence for line in group),
    )


def paragraph_type(text: str, *, is_large: bool) -> str:
    """Guess the element type of a paragraph."""
    if _LIST_ITEM.match(text):
        return "ListItem"
    return "Title" if is_large and len(text) <= _MAX_HEADING_LENGTH else "NarrativeText"


def word_f1(one: str, other: str) -> float:
    """Return the F1 score of the words that two texts have in common."""
    a, b = (Counter(_WORD.findall(text.casefold())) for text in (one, other))
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 1.0
