"""Puts words into the parts of a page, and the parts into the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from duly.apps.documents.engines.reader.hires.layout_model import Region
from duly.apps.documents.engines.reader.lines import Word, around, lines, mean, paragraphs, rounded
from duly.apps.documents.engines.reader.models import Box, Found

_BETWEEN = 0.012
"""Share of the page's width that at least lies between two columns."""
_APART = 0.001
_NARROW = 0.12
"""Share of the page's width below which it is no column: numbers beside the text."""
_MARGIN = 0.006
"""How far beside a part its words may lie."""


@dataclass(frozen=True)
class Block:
    """Elements that stay together, and where they are."""

    box: Box
    elements: Sequence[Found]


def elements(words: Sequence[Word], regions: Sequence[Region]) -> list[Found]:
    """What a page says, in reading order. Words outside of all parts make paragraphs of their own."""
    inside: dict[Region | None, list[Word]] = {}
    for word, region in _placed(words, regions):
        inside.setdefault(region, []).append(word)
    outside = inside.pop(None, [])
    blocks = [_block(region, held) for region, held in inside.items() if region]
    blocks += [Block(e.box or (0, 0, 1, 1), [e]) for e in paragraphs(lines(outside))]
    return [element for block in ordered(blocks) for element in block.elements]


def _placed(words: Sequence[Word], regions: Sequence[Region]) -> Iterator[tuple[Word, Region | None]]:
    """Each word with the part that it lies in; the end of a line that sticks out belongs to its beginning."""
    line, last = -1, None
    for word in words:
        region = _region(word, regions) or (last if word.line == line else None)
        line, last = word.line, region
        yield word, region


def _region(word: Word, regions: Sequence[Region]) -> Region | None:
    x, y = (word.box[0] + word.box[2]) / 2, (word.box[1] + word.box[3]) / 2
    return next((region for region in regions if _holds(region.box, x, y)), None)


def _holds(box: Box, x: float, y: float) -> bool:
    return box[0] - _MARGIN <= x <= box[2] + _MARGIN and box[1] - _MARGIN <= y <= box[3] + _MARGIN


def _block(region: Region, words: Sequence[Word]) -> Block:
    box = rounded(around(word.box for word in words))
    if region.type == "Table":
        text = "\n".join(_row(row) for row in _rows(words))
        return Block(box, [Found("Table", text, box, mean(w.confidence for w in words))])
    found = list(paragraphs(lines(words)))
    if region.type in ("NarrativeText", "Title") and len(found) > 1:
        return Block(box, [replace(e, type="NarrativeText") if e.type == "Title" else e for e in found])
    return Block(box, [replace(e, type=e.type if e.type == "ListItem" else region.type) for e in found])


def _rows(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Words of a table beside one another, whichever cell they were found in."""
    row: list[Word] = []
    for word in sorted(words, key=lambda w: w.box[1] + w.box[3]):
        middle = (word.box[1] + word.box[3]) / 2
        if row and middle > max(w.box[3] for w in row[:1]):
            yield row
            row = []
        row.append(word)
    if row:
        yield row


def _row(words: Sequence[Word]) -> str:
    text, edge = "", 0.0
    for word in sorted(words, key=lambda w: w.box[0]):
        between = "\t" if word.box[0] - edge > _BETWEEN else " "
        text = f"{text}{between}{word.text}" if text else word.text
        edge = word.box[2]
    return text


def ordered(blocks: Sequence[Block]) -> list[Block]:
    """Columns from left to right, and within each from top to bottom; what spans columns divides them."""
    columns = _columns(blocks)
    if len(columns) > 1:
        return [block for column in columns for block in ordered(column)]
    rows = _cut(blocks, 1, _APART)
    if len(rows) <= 1:
        return sorted(blocks, key=lambda b: (round(b.box[1], 2), b.box[0]))
    return [block for run in _runs(rows) for block in ordered(run)]


def _runs(rows: Sequence[list[Block]]) -> Iterator[list[Block]]:
    """Rows that have the same columns are read together."""
    run: list[Block] = []
    for row in rows:
        if run and len(_columns([*run, *row])) == 1:
            yield run
            run = []
        run = [*run, *row]
    yield run


def _columns(blocks: Sequence[Block]) -> list[list[Block]]:
    columns = _cut(blocks, 0, _BETWEEN)
    edges = [around(block.box for block in column) for column in columns]
    return columns if all(right - left > _NARROW for left, _, right, _ in edges) else [list(blocks)]


def _cut(blocks: Sequence[Block], axis: int, least: float) -> list[list[Block]]:
    """Groups of blocks with nothing between them, along the page or across it."""
    groups: list[list[Block]] = []
    end = 0.0
    for block in sorted(blocks, key=lambda b: b.box[axis]):
        if not groups or block.box[axis] - end > least:
            groups.append([])
            end = 0.0
        groups[-1].append(block)
        end = max(end, block.box[axis + 2])
    return groups
