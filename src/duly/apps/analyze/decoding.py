"""Decode files by content: UTF-8, UTF-16 with a byte order mark, Windows-1252; HTML without tags."""

from __future__ import annotations

import re
from collections.abc import Iterator

from duly.core.errors import ConfigurationError
from duly.html_reader import TABLE, Block, TooDeep, read_html
from duly.text_decoding import decode_text, normalize_text

_BINARY_FORMATS = (
    (b"%PDF-", "a PDF file"),
    (b"PK\x03\x04", "a ZIP or Office file"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x1f\x8b", "a compressed file"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_MAX_CONTROL_SHARE = 0.002
_HTML_HEAD_LENGTH = 1000
_HTML_START = re.compile(r"<(?:!doctype\s{1,9}html|html)\b", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\f]+")


class UnreadableSource(Exception):
    """The data is not text; the message says what it is."""


def decode(data: bytes) -> str:
    """Decode a file, or raise `UnreadableSource`."""
    for magic, description in _BINARY_FORMATS:
        if data.startswith(magic):
            raise UnreadableSource(description)
    text = decode_text(data)
    if text is None:
        raise UnreadableSource("neither UTF-8 nor Windows-1252")
    if "\0" in text or len(_CONTROL.findall(text)) > _MAX_CONTROL_SHARE * len(text):
        raise UnreadableSource("binary content")
    return text


def clean_text(text: str) -> str:
    """Normalize a text, and remove HTML tags. Offsets refer to this text."""
    text = normalize_text(text)
    try:
        return html_text(text) if _is_html(text) else text
    except TooDeep:
        raise UnreadableSource("an HTML page nested too deeply") from None


def _is_html(text: str) -> bool:
    head = text[:_HTML_HEAD_LENGTH]
    return head.lstrip().startswith("<") and _HTML_START.search(head) is not None


def html_text(page: str) -> str:
    """Return the visible text of an HTML page, a paragraph for each block."""
    try:
        blocks = read_html(page)
    except ImportError:
        raise ConfigurationError(
            "lxml is not installed", field="sources", fix="install duly[analyze]"
        ) from None
    return "\n\n".join(paragraph for block in blocks for paragraph in _paragraphs(block))


def _paragraphs(block: Block) -> Iterator[str]:
    """Yield a block as one line; of a table each row, or each block in its cells if a cell has several."""
    for row in block.rows:
        if block.type == TABLE:
            separator = "\n" if any("\n" in cell for cell in row) else "  "
            yield from filter(str.strip, separator.join(row).split("\n"))
        else:
            yield _SPACE.sub(" ", row[0]).strip(" ")
