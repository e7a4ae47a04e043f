"""Read the blocks of an HTML page: titles, paragraphs, list items, tables, code, descriptions of images.

lxml parses the page. Nothing else of Duly is imported here, because the isolated process that reads documents
uses this module as well as the analysis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

TEXT = "NarrativeText"
TITLE = "Title"
LIST_ITEM = "ListItem"
CODE = "CodeSnippet"
TABLE = "Table"
IMAGE = "Image"
MAX_DEPTH = 1_000
"""Elements nested in one another; browsers stop at 512."""

_CHUNK = 16 * 1024
_BLOCK_TAGS = """
address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer
form h1 h2 h3 h4 h5 h6 header hr legend li main nav ol option p pre section summary table title ul
"""
_BREAKS = frozenset(_BLOCK_TAGS.split())
_WRAPPERS = frozenset(("div", "p"))
"""Around the text of a heading or of a list item, they do not change what the text is."""
_HIDDEN = frozenset(("script", "style", "template"))
_CELLS = frozenset(("td", "th"))
_TYPES = {"li": LIST_ITEM, "pre": CODE, **dict.fromkeys(("title", "h1", "h2", "h3", "h4", "h5", "h6"), TITLE)}
_SPACE = re.compile(r"[ \t\n\f\r]+")
_LINE = "\v"


class TooDeep(Exception):
    """The elements of a page are nested too deeply."""


@dataclass(frozen=True)
class Block:
    """A block of a page.

    A table has rows of cells, in which a newline separates blocks. Any other block is one cell, in which a
    newline is a `<br>`. No-break spaces are kept.
    """

    type: str
    rows: list[list[str]]


def read_html(page: str, max_depth: int = MAX_DEPTH) -> list[Block]:
    """Return the blocks of a page in document order, or raise `TooDeep`."""
    page = page.replace("\0", "")
    if not page:
        return []
    # lxml keeps the names of all tags and attributes until its thread ends: a pooled thread would only grow.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_parse, page, max_depth).result()


def _parse(page: str, max_depth: int) -> list[Block]:
    from lxml import etree  # type: ignore[import-untyped] # an extra brings it

    builder = _Builder(max_depth)
    # Without huge_tree, libxml2 silently drops the rest of a page after 10 MB of text or of one tag.
    parser = etree.HTMLParser(target=builder, encoding="utf-8", huge_tree=True)
    # libxml2 compares an end tag with every open element, and an exception stops it only after a chunk: short
    # chunks keep a deep page cheap. They end before a `<`: libxml2 reads a cut character reference twice.
    start = 0
    while start < len(page):
        end = page.find("<", start + _CHUNK)
        end = end if end > 0 else len(page)
        parser.feed(page[start:end].encode(errors="replace"))
        start = end
    parser.close()
    return builder.blocks


class _Builder:
    """The target of the parser: gathers text until a tag ends the block."""

    def __init__(self, max_depth: int) -> None:
        self.blocks: list[Block] = []
        self._max_depth = max_depth
        self._depth = 0
        self._hidden = 0
        self._parts: list[str] = []
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._type = TEXT
        self._only_images = True
        self._empty_title = False
        """Whether a title without text has just ended: libxml2 ends a heading when a `<p>` begins in it."""
        self._in_table = False
        self._in_cell = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""
        self._depth += 1
        if self._depth > self._max_depth:
            raise TooDeep
        after_empty_title, self._empty_title = self._empty_title, False
        self._hidden += tag in _HIDDEN
        if self._hidden:
            return
        match tag:
            case "img":
                self._parts.append(f" {attributes.get('alt', '')} ")
            case "br":
                self._parts.append(" " if self._in_table else _LINE)
            case "table":
                self._end_table()
            case "tr" | "td" | "th":
                self._start_row_or_cell(tag)
            case _ if tag in _BREAKS and self._in_table:
                self._parts.append(_LINE)
            case "p" if after_empty_title:
                self._type = TITLE
            case _ if tag in _BREAKS:
                wraps = not self._end_block() and tag in _WRAPPERS
                self._type = self._type if wraps else _TYPES.get(tag, TEXT)

    def end(self, tag: str) -> None:
        """End an element; the parser also ends those that the page leaves open."""
        self._depth -= 1
        self._empty_title = False
        if self._hidden:
            self._hidden -= tag in _HIDDEN
        elif tag == "table":
            self._end_table()
        elif tag in _BREAKS and self._in_table:
            self._parts.append(_LINE)
        elif tag in _BREAKS:
            self._empty_title = not self._end_block() and self._type == TITLE
            self._type = TEXT

    def data(self, text: str) -> None:
        """Add text; character references are resolved."""
        if not self._hidden:
            self._parts.append(text)
            self._only_images = self._only_images and not text.strip()
            self._empty_title = False

    def close(self) -> None:
        """End the page."""
        self._end_table()

    def _end_table(self) -> None:
        """End the table, if there is one; the text after a nested table belongs to no row."""
        if self._in_table:
            self._start_row_or_cell("tr")
            if self._rows:
                self.blocks.append(Block(TABLE, self._rows))
            self._rows, self._in_table = [], False
        self._end_block()
        self._type = TEXT

    def _start_row_or_cell(self, tag: str) -> None:
        if not self._in_table:
            self._end_block()
            self._in_table = True
        text = _collapsed("".join(self._parts))
        if text or self._in_cell:
            self._cells.append(text)
        if tag == "tr":
            if any(cell.strip() for cell in self._cells):
                self._rows.append(self._cells)
            self._cells = []
        self._parts, self._only_images, self._in_cell = [], True, tag in _CELLS

    def _end_block(self) -> bool:
        """Return whether there was any text in the block."""
        text = "".join(self._parts)
        text = text.replace(_LINE, "\n").strip("\n").rstrip() if self._type == CODE else _collapsed(text)
        if text:
            self.blocks.append(Block(IMAGE if self._only_images else self._type, [[text]]))
        self._parts, self._only_images = [], True
        return bool(text)


def _collapsed(text: str) -> str:
    """Collapse white space as HTML does, which keeps no-break spaces; empty if there is nothing else."""
    lines = (_SPACE.sub(" ", line).strip(" ") for line in text.split(_LINE))
    return "\n".join(lines).strip("\n") if text.strip() else ""
