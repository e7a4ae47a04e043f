"""Pages of the web: their blocks, as elements of a document."""

from __future__ import annotations

from duly.apps.documents.engines.reader.models import Found, Trouble
from duly.html_reader import CODE, TABLE, Block, TooDeep, read_html


def read(page: str, max_depth: int) -> list[Found]:
    """Return the elements of a page in document order."""
    try:
        blocks = read_html(page, max_depth)
    except TooDeep:
        raise Trouble("document.too_deep", "its parts lie too deep within one another") from None
    return [Found(block.type, _text(block)) for block in blocks]


def _text(block: Block) -> str:
    """Rows as lines, cells between tabs; code as it is."""
    if block.type == TABLE:
        return "\n".join("\t".join(map(_words, row)).rstrip() for row in block.rows)
    [[text]] = block.rows
    return text if block.type == CODE else "\n".join(map(_words, text.split("\n"))).strip()


def _words(text: str) -> str:
    return " ".join(text.split())
