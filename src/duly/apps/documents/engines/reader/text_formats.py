"""Text formats: plain text, XML, HTML, and nesting checks of Markdown and RTF."""

from __future__ import annotations

import re
from collections.abc import Iterator

from duly.apps.documents.engines.reader.lines import paragraph_type
from duly.apps.documents.engines.reader.models import ReadElement, ReadError, nested_too_deeply
from duly.html_reader import CODE, TABLE, Block, TooDeep, read_html
from duly.text_decoding import decode_text, normalize_text

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROL_SHARE = 0.002
_BLANK_LINE = re.compile(r"\n[^\S\n]*+\n\s*+")
_TAG = re.compile(r"<[^<>]*+>")


def decode(data: bytes) -> str:
    """Decode and normalize a text file, or raise if it is binary."""
    decoded = decode_text(data)
    text = normalize_text(decoded or "")
    if decoded is None or len(_CONTROL.findall(text)) > _MAX_CONTROL_SHARE * len(text):
        raise ReadError("document.unsupported", "the file is neither text nor of a supported format")
    return text


def paragraphs(text: str) -> Iterator[ReadElement]:
    """Yield the paragraphs of a plain text; blank lines separate them."""
    for part in _BLANK_LINE.split(text):
        if paragraph := part.strip():
            yield ReadElement(paragraph_type(paragraph, is_large=False), paragraph)


def read_xml(text: str) -> list[ReadElement]:
    """Return the paragraphs of an XML file without its tags."""
    if "<!ENTITY" in text:
        raise ReadError("document.bomb", "the file declares XML entities")
    return list(paragraphs(_TAG.sub("\n", text))) or list(paragraphs(text))


def read_html_page(page: str, max_depth: int) -> list[ReadElement]:
    """Return the elements of an HTML page in document order."""
    try:
        blocks = read_html(page, max_depth)
    except TooDeep:
        raise nested_too_deeply() from None
    return [ReadElement(block.type, _block_text(block)) for block in blocks]


def _block_text(block: Block) -> str:
    """Return rows as lines with tabs between cells; code unchanged."""
    if block.type == TABLE:
        return "\n".join("\t".join(map(_collapse, row)).rstrip() for row in block.rows)
    [[text]] = block.rows
    return text if block.type == CODE else "\n".join(map(_collapse, text.split("\n"))).strip()


def _collapse(text: str) -> str:
    return " ".join(text.split())


def check_rtf_depth(data: bytes, max_depth: int) -> None:
    """Raise if the groups of an RTF file are nested too deeply for a recursive parser."""
    depth = 0
    for brace in re.finditer(rb"\\[{}\\]|([{}])", data):
        if brace[1]:
            depth += 1 if brace[1] == b"{" else -1
            _check_depth(depth, max_depth)


def check_markdown_depth(text: str, max_depth: int) -> None:
    """Raise if quotes or lists of a Markdown file are nested too deeply for a recursive parser."""
    for line in text.split("\n"):
        lead = re.match(r"[\s>*+-]*+", line)
        _check_depth(
            sum(char in ">*+-" for char in lead[0]) if lead and len(line) > max_depth else 0, max_depth
        )
        _check_depth(max(line.count("["), line.count("(")) // 10, max_depth)


def _check_depth(depth: int, max_depth: int) -> None:
    if depth > max_depth:
        raise nested_too_deeply()
