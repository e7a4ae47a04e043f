"""Pages of the web: what they say, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

from duly.documents.engines.inside.found import Found

_BLOCKS = """
address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer
form h1 h2 h3 h4 h5 h6 header hr li main nav ol option p pre section summary table title ul
"""
_BREAKS = frozenset(_BLOCKS.split())
_WRAPPERS = frozenset(("div", "p"))
"""What stands around the text of a heading, or of an item of a list, says nothing of it."""
_SILENT = ("script", "style")
_CELLS = ("td", "th")
_TEXT = "NarrativeText"
_TYPES = {
    "li": "ListItem",
    "pre": "CodeSnippet",
    **dict.fromkeys(("title", "h1", "h2", "h3", "h4", "h5", "h6"), "Title"),
}
_LINE = "\v"


def read(text: str) -> list[Found]:
    """Its blocks, in the order in which they are written."""
    page = _Page()
    page.feed(text)
    page.close()
    page.end_rows()
    return page.found


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Found] = []
        self._parts: list[str] = []
        self._cells: list[str] = []
        self._rows: list[str] = []
        self._type = _TEXT
        self._pictured = True
        """Whether there is nothing in the block but what pictures are said to show."""
        self._silent = False
        self._in_rows = False
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        match tag:
            case "script" | "style":
                self._silent = True
            case "img":
                self._parts.append(f" {dict(attrs).get('alt') or ''} ")
            case "br":
                self._parts.append(_LINE)
            case "table":
                self.end_rows()
            case "tr" | "td" | "th":
                self._row_or_cell(tag)
            case _ if tag in _BREAKS and self._in_rows:
                self._parts.append(" ")
            case _ if tag in _BREAKS:
                going_on = not self._end() and tag in _WRAPPERS
                self._type = self._type if going_on else _TYPES.get(tag, _TEXT)

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = False
        elif tag == "table":
            self.end_rows()
        elif tag in _BREAKS and self._in_rows:
            self._parts.append(" ")
        elif tag in _BREAKS:
            self._end()
            self._type = _TEXT

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._parts.append(data)
            self._pictured = self._pictured and not data.strip()

    def end_rows(self) -> None:
        """A table is over, or another begins within it; what comes next is no row of it."""
        if self._in_rows:
            self._row_or_cell("tr")
            rows, self._rows, self._in_rows = "\n".join(self._rows), [], False
            self.found += [Found("Table", rows)] if rows else []
        self._end()
        self._type = _TEXT

    def _row_or_cell(self, tag: str) -> None:
        """One begins: what was before it is over."""
        if not self._in_rows:
            self._end()
            self._in_rows = True
        said = " ".join("".join(self._parts).split())
        if said or self._in_cell:
            self._cells.append(said)
        if tag == "tr" and any(self._cells):
            self._rows.append("\t".join(self._cells).rstrip())
        self._cells = [] if tag == "tr" else self._cells
        self._parts, self._pictured, self._in_cell = [], True, tag in _CELLS

    def _end(self) -> bool:
        """A block is over; whether there was anything in it."""
        said = _laid_out("".join(self._parts), self._type == "CodeSnippet")
        if said:
            self.found.append(Found("Image" if self._pictured else self._type, said))
        self._parts, self._pictured = [], True
        return bool(said)


def _laid_out(text: str, as_it_is: bool) -> str:
    if as_it_is:
        return text.replace(_LINE, "\n").strip("\n").rstrip()
    return "\n".join(" ".join(line.split()) for line in text.split(_LINE)).strip()
