"""Assign words to layout regions, and sort the regions into reading order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from duly.apps.documents.engines.reader.hires.layout_model import Region
from duly.apps.documents.engines.reader.lines import (
    Word,
    clip_box,
    enclosing_box,
    group_lines,
    group_paragraphs,
    mean_confidence,
)
from duly.apps.documents.engines.reader.models import Box, ReadElement

_MIN_COLUMN_GAP = 0.012
_MIN_ROW_GAP = 0.001
_MIN_COLUMN_WIDTH = 0.12
"""Share of the page's width below which it is not a column, but numbers beside the text."""
_REGION_MARGIN = 0.006
"""Distance outside of a region at which its words may still be."""


@dataclass(frozen=True)
class LayoutBlock:
    """The elements of a region, which stay together."""

    box: Box
    elements: Sequence[ReadElement]


def order_elements(words: Sequence[Word], regions: Sequence[Region]) -> list[ReadElement]:
    """Return the elements of a page in reading order. Words outside of all regions form paragraphs."""
    by_region: dict[Region | None, list[Word]] = {}
    for word, region in _assign(words, regions):
        by_region.setdefault(region, []).append(word)
    outside = by_region.pop(None, [])
    blocks = [_block(region, held) for region, held in by_region.items() if region]
    blocks += [LayoutBlock(e.box or (0, 0, 1, 1), [e]) for e in group_paragraphs(group_lines(outside))]
    return [element for block in order_blocks(blocks) for element in block.elements]


def _assign(words: Sequence[Word], regions: Sequence[Region]) -> Iterator[tuple[Word, Region | None]]:
    """Yield each word with its region; the end of a line outside of a region belongs to that of its start."""
    line, last = -1, None
    for word in words:
        region = _find_region(word, regions) or (last if word.line == line else None)
        line, last = word.line, region
        yield word, region


def _find_region(word: Word, regions: Sequence[Region]) -> Region | None:
    x, y = (word.box[0] + word.box[2]) / 2, (word.box[1] + word.box[3]) / 2
    return next((region for region in regions if _contains(region.box, x, y)), None)


def _contains(box: Box, x: float, y: float) -> bool:
    margin = _REGION_MARGIN
    return box[0] - margin <= x <= box[2] + margin and box[1] - margin <= y <= box[3] + margin


def _block(region: Region, words: Sequence[Word]) -> LayoutBlock:
    box = clip_box(enclosing_box(word.box for word in words))
    if region.type == "Table":
        text = "\n".join(_row_text(row) for row in _table_rows(words))
        return LayoutBlock(
            box, [ReadElement("Table", text, box, mean_confidence(w.confidence for w in words))]
        )
    elements = list(group_paragraphs(group_lines(words)))
    if region.type in ("NarrativeText", "Title") and len(elements) > 1:
        types = ["NarrativeText" if e.type == "Title" else e.type for e in elements]
    else:
        types = [e.type if e.type == "ListItem" else region.type for e in elements]
    return LayoutBlock(box, [replace(e, type=t) for e, t in zip(elements, types, strict=True)])


def _table_rows(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield the words of a table that are beside one another, regardless of their cells."""
    row: list[Word] = []
    for word in sorted(words, key=lambda w: w.box[1] + w.box[3]):
        middle = (word.box[1] + word.box[3]) / 2
        if row and middle > row[0].box[3]:
            yield row
            row = []
        row.append(word)
    if row:
        yield row


def _row_text(words: Sequence[Word]) -> str:
    text, edge = "", 0.0
    for word in sorted(words, key=lambda w: w.box[0]):
        separator = "\t" if word.box[0] - edge > _MIN_COLUMN_GAP else " "
        text = f"{text}{separator}{word.text}" if text else word.text
        edge = word.box[2]
    return text


def order_blocks(blocks: Sequence[LayoutBlock]) -> list[LayoutBlock]:
    """Sort columns from left to right and each from top to bottom; a block across columns divides them."""
    columns = _columns(blocks)
    if len(columns) > 1:
        return [block for column in columns for block in order_blocks(column)]
    rows = _split_at_gaps(blocks, 1, _MIN_ROW_GAP)
    if len(rows) <= 1:
        return sorted(blocks, key=lambda b: (round(b.box[1], 2), b.box[0]))
    return [block for run in _runs(rows) for block in order_blocks(run)]


def _runs(rows: Sequence[list[LayoutBlock]]) -> Iterator[list[LayoutBlock]]:
    """Join rows with the same columns."""
    run: list[LayoutBlock] = []
    for row in rows:
        if run and len(_columns([*run, *row])) == 1:
            yield run
            run = []
        run = [*run, *row]
    yield run


def _columns(blocks: Sequence[LayoutBlock]) -> list[list[LayoutBlock]]:
    columns = _split_at_gaps(blocks, 0, _MIN_COLUMN_GAP)
    edges = [enclosing_box(block.box for block in column) for column in columns]
    return columns if all(right - left > _MIN_COLUMN_WIDTH for left, _, right, _ in edges) else [list(blocks)]


def _split_at_gaps(blocks: Sequence[LayoutBlock], axis: int, min_gap: float) -> list[list[LayoutBlock]]:
    """Split blocks at the gaps along an axis: 0 across the page, 1 down."""
    groups: list[list[LayoutBlock]] = []
    end = 0.0
    for block in sorted(blocks, key=lambda b: b.box[axis]):
        if not groups or block.box[axis] - end > min_gap:
            groups.append([])
            end = 0.0
        groups[-1].append(block)
        end = max(end, block.box[axis + 2])
    return groups
