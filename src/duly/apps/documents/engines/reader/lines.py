"""Words that lie on a page, and the lines and paragraphs that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from duly.apps.documents.engines.reader.models import Box, Found

_ITEM = re.compile(r"(?:[•◦▪■●‣⁃*–-]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+\S")  # noqa: RUF001 - dashes as they are set
_LETTERS = re.compile(r"\w+")
_HEADING = 1.2
_LONGEST_HEADING = 200
_GAP = 0.75


@dataclass(frozen=True)
class Word:
    """A word, where it is, and the line that it stands in."""

    text: str
    box: Box
    line: int = 0
    confidence: float | None = None


@dataclass(frozen=True)
class Line:
    """Words beside one another."""

    text: str
    box: Box
    confidence: float | None = None

    @property
    def height(self) -> float:
        """As a share of the page."""
        return self.box[3] - self.box[1]


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box that holds them all."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def rounded(box: Box) -> Box:
    """Within the page, and no finer than anybody can see."""
    left, top, right, bottom = (round(min(1.0, max(0.0, side)), 4) for side in box)
    return left, top, right, bottom


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that there are, if there are any."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else None


def lines(words: Iterable[Word]) -> list[Line]:
    """The lines that the words stand in."""
    grouped = (list(group) for _, group in groupby(words, key=lambda word: word.line))
    return [
        Line(" ".join(w.text for w in group), around(w.box for w in group), mean(w.confidence for w in group))
        for group in grouped
    ]


def joined(texts: Sequence[str]) -> str:
    """Lines as one text; a word that was divided at the end of a line is one again."""
    whole = ""
    for text in texts:
        if whole.endswith("-") and whole[-2:-1].isalpha() and text[:1].islower():
            whole = whole[:-1] + text
        else:
            whole = f"{whole} {text}" if whole else text
    return whole


def paragraphs(found: Sequence[Line]) -> Iterator[Found]:
    """Lines that belong together: close, of one size, one below the other."""
    if not found:
        return
    usual = median(line.height for line in found)
    group: list[Line] = []
    for line in found:
        if group and not _goes_on(group[-1], line, usual):
            yield _paragraph(group, usual)
            group = []
        group.append(line)
    yield _paragraph(group, usual)


def _goes_on(last: Line, line: Line, usual: float) -> bool:
    if _beside(last, line):
        return True
    near = -usual < line.box[1] - last.box[3] < _GAP * usual
    alike = 0.8 < (line.height or 1) / (last.height or 1) < 1.25
    below = line.box[0] < last.box[2] and last.box[0] < line.box[2]
    return near and alike and below and not _ITEM.match(line.text)


def _beside(last: Line, line: Line) -> bool:
    """Whether it is the same line still, only of another size: an exponent, a formula."""
    common = min(last.box[3], line.box[3]) - max(last.box[1], line.box[1])
    return common > 0.4 * min(last.height, line.height) and -0.01 < line.box[0] - last.box[2] < 0.02


def _paragraph(group: Sequence[Line], usual: float) -> Found:
    text = joined([line.text for line in group])
    box = rounded(around(line.box for line in group))
    return Found(
        kind(text, group[0].height > _HEADING * usual), text, box, mean(line.confidence for line in group)
    )


def kind(text: str, large: bool) -> str:
    """What a paragraph seems to be."""
    if _ITEM.match(text):
        return "ListItem"
    return "Title" if large and len(text) <= _LONGEST_HEADING else "NarrativeText"


def bag(text: str) -> dict[str, int]:
    """How often each word is in a text."""
    counted: dict[str, int] = {}
    for word in _LETTERS.findall(text.casefold()):
        counted[word] = counted.get(word, 0) + 1
    return counted


def likeness(one: str, other: str) -> float:
    """How much two texts have in common: the harmonic mean of both shares of common words."""
    a, b = bag(one), bag(other)
    common = sum(min(count, b.get(word, 0)) for word, count in a.items())
    total = sum(a.values()) + sum(b.values())
    return 2 * common / total if total else 1.0
