"""The adapter to xberg, the only module that uses it: the structure of a file as nodes and as elements."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from duly.apps.documents.engines.reader.lines import clip_box
from duly.apps.documents.engines.reader.models import Box, ReadElement, ReadError

_TYPES = {
    "title": "Title",
    "heading": "Title",
    "paragraph": "NarrativeText",
    "quote": "NarrativeText",
    "definition_item": "ListItem",
    "list_item": "ListItem",
    "table": "Table",
    "code": "CodeSnippet",
    "formula": "Formula",
    "footnote": "Footnote",
    "comment": "NarrativeText",
    "citation": "NarrativeText",
    "raw_block": "NarrativeText",
    "admonition": "NarrativeText",
    "metadata_block": "NarrativeText",
    "image": "Image",
}
_ERROR_CODES = (
    ("password", "document.encrypted"),
    ("encrypted", "document.encrypted"),
    ("unsupported", "document.unsupported"),
    ("unrecognized sheet", "document.unsupported"),
    ("depth", "document.too_deep"),
    ("nesting", "document.too_deep"),
    ("security", "document.bomb"),
)
"""Codes by a word of the error message: xberg has no codes of its own."""
_LAYERS = {"header": "Header", "footer": "Footer", "footnote": "Footnote"}
_TEXT_FIELDS = ("term", "title", "text", "definition", "content", "description")


@dataclass(frozen=True)
class Node:
    """A node of xberg's document structure."""

    content: dict[str, Any]
    layer: str
    page: int | None
    box: Box | None

    @property
    def type(self) -> str:
        """The node type of xberg."""
        return str(self.content.get("node_type"))

    @property
    def text(self) -> str:
        """The text of the node; a table has a line for each row."""
        if self.type not in _TYPES:
            return ""
        if self.type == "table":
            return _table_text(self.content["grid"])
        if self.type == "metadata_block":
            return "\n".join(f"{e['key']}: {e['value']}" for e in self.content.get("entries", []))
        parts = (self.content.get(name) for name in _TEXT_FIELDS)
        return "\n".join(part.strip() for part in parts if part and part.strip())


@dataclass(frozen=True)
class Structure:
    """The nodes of a file in reading order."""

    nodes: Sequence[Node]
    pages: int
    """The number of pages; 1 if xberg does not report it."""


def extract(data: bytes, media_type: str) -> Structure:
    """Extract the structure of a file."""
    document = asyncio.run(_extract(data, media_type))
    return Structure(list(_nodes(document)), len(document.pages or ()) or 1)


async def _extract(data: bytes, media_type: str) -> Any:
    import xberg

    source = xberg.ExtractInput(kind="bytes", bytes=data, mime_type=media_type)
    try:
        extraction = await xberg.extract(source, _config())
    except MemoryError:
        raise
    except Exception as error:  # its own exceptions, and RuntimeErrors with the same messages
        raise _read_error(f"{type(error).__name__} {error}") from None
    if not extraction.results:
        raise _read_error(" ".join(str(e) for e in extraction.errors))
    return extraction.results[0]


def _config() -> Any:
    import xberg

    return xberg.ExtractionConfig(
        include_document_structure=True,
        disable_ocr=True,
        use_cache=False,
        enable_quality_processing=False,
        max_archive_depth=0,
        concurrency=xberg.ConcurrencyConfig(max_threads=1),
        pages=xberg.PageConfig(extract_pages=True),
        content_filter=xberg.ContentFilterConfig(
            include_headers=True,
            include_footers=True,
            include_footnotes=True,
            include_watermarks=True,
            strip_repeating_text=False,
        ),
        security_limits=xberg.SecurityLimits(max_compression_ratio=2000, max_table_cells=2_000_000),
    )


def _read_error(message: str) -> ReadError:
    message = message.lower()
    code = next((code for word, code in _ERROR_CODES if word in message), "document.broken")
    return ReadError(code, "the file is damaged or not supported")


def _nodes(document: Any) -> Iterator[Node]:
    for node in document.document.nodes if document.document else []:
        b = node.bbox
        box = (b.x0, b.y0, b.x1, b.y1) if b else None
        yield Node(json.loads(str(node.content)), str(node.content_layer), node.page, box)


def _table_text(grid: dict[str, Any]) -> str:
    rows: dict[int, list[tuple[int, str]]] = {}
    for cell in grid.get("cells", []):
        rows.setdefault(cell["row"], []).append((cell["col"], " ".join(str(cell["content"]).split())))
    filled = (row for _, row in sorted(rows.items()) if any(text for _, text in row))
    return "\n".join("\t".join(text for _, text in sorted(row)).rstrip() for row in filled)


def to_elements(nodes: Sequence[Node], to_page: Callable[[Box], Box] | None = None) -> list[ReadElement]:
    """Return the nodes with text as elements; `to_page` maps their boxes to shares of the page."""
    return [
        ReadElement(
            _LAYERS.get(node.layer) or _TYPES[node.type],
            text,
            clip_box(to_page(node.box)) if node.box and to_page else None,
        )
        for node in nodes
        if (text := node.text)
    ]


def number_nodes(nodes: Sequence[Node], *, from_next: bool = False) -> Iterator[tuple[int, Node]]:
    """Yield each node with its page; one without a page takes that of the previous or the next node."""
    page, numbered = 1, []
    for node in reversed(nodes) if from_next else nodes:
        page = node.page or page
        numbered.append((page, node))
    return iter(reversed(numbered) if from_next else numbered)
