"""The text of an HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from duly.core.errors import ConfigurationError
from duly.html_reader import TABLE, Block, read_html

_HEAD = 1000
_PAGE = re.compile(r"<(?:!doctype\s{1,9}html|html)\b", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\f]+")


def is_html(text: str) -> bool:
    """Whether it begins like a page."""
    head = text[:_HEAD]
    return head.lstrip().startswith("<") and _PAGE.search(head) is not None


def text_of_html(page: str) -> str:
    """Return what a reader sees of a page, a paragraph for each block."""
    try:
        blocks = read_html(page)
    except ImportError:
        raise ConfigurationError(
            "lxml is not installed", field="sources", fix="install duly[analyze]"
        ) from None
    return "\n\n".join(paragraph for block in blocks for paragraph in _paragraphs(block))


def _paragraphs(block: Block) -> Iterator[str]:
    """Yield the block on one line; of a table each row, or each block in its cells if one has several."""
    for row in block.rows:
        if block.type == TABLE:
            between = "\n" if any("\n" in cell for cell in row) else "  "
            yield from filter(str.strip, between.join(row).split("\n"))
        else:
            yield _SPACE.sub(" ", row[0]).strip(" ")
