"""The adapter to xberg: what it finds in a file, as elements. Nothing else knows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from duly.apps.documents.engines.reader.lines import rounded
from duly.apps.documents.engines.reader.models import Box, Found, Trouble

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
_WORDS = (
    ("password", "document.encrypted"),
    ("encrypted", "document.encrypted"),
    ("unsupported", "document.unsupported"),
    ("unrecognized sheet", "document.unsupported"),
    ("depth", "document.too_deep"),
    ("nesting", "document.too_deep"),
    ("security", "document.bomb"),
)
_LAYERS = {"header": "Header", "footer": "Footer", "footnote": "Footnote"}


@dataclass(frozen=True)
class Node:
    """A part of a document as xberg describes it."""

    content: dict[str, Any]
    layer: str
    page: int | None
    box: Box | None

    @property
    def type(self) -> str:
        """What it calls it."""
        return str(self.content.get("node_type"))


@dataclass(frozen=True)
class Structure:
    """All parts of a file, in reading order."""

    nodes: Sequence[Node]
    pages: int
    """How many it says that it has; one if it does not say."""


def read(data: bytes, media_type: str) -> Structure:
    """What a file consists of."""
    document = asyncio.run(_extract(data, media_type))
    return Structure(list(_nodes(document)), len(document.pages or ()) or 1)


async def _extract(data: bytes, media_type: str) -> Any:
    import xberg

    asked = xberg.ExtractInput(kind="bytes", bytes=data, mime_type=media_type)
    try:
        said = await xberg.extract(asked, _config())
    except MemoryError:
        raise
    except Exception as trouble:  # its own kinds of errors, and plain RuntimeErrors with the same words
        raise Trouble(_code(f"{type(trouble).__name__} {trouble}"), "it is damaged") from None
    if not said.results:
        raise Trouble(_code(" ".join(str(e) for e in said.errors)), "it is damaged")
    return said.results[0]


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


def _code(said: str) -> str:
    """What its words come to; it has no codes of its own."""
    said = said.lower()
    return next((code for word, code in _WORDS if word in said), "document.broken")


def _nodes(document: Any) -> Iterator[Node]:
    found = document.document.nodes if document.document else []
    for node in found:
        b = node.bbox
        box = (b.x0, b.y0, b.x1, b.y1) if b else None
        yield Node(json.loads(str(node.content)), str(node.content_layer), node.page, box)


def text(node: Node) -> str:
    """What it says; of a table a line for each row."""
    content = node.content
    if node.type not in _TYPES:
        return ""
    if node.type == "table":
        return _table(content["grid"])
    if node.type == "metadata_block":
        return "\n".join(f"{e['key']}: {e['value']}" for e in content.get("entries", []))
    parts = (content.get(name) for name in ("term", "title", "text", "definition", "content", "description"))
    return "\n".join(part.strip() for part in parts if part and part.strip())


def _table(grid: dict[str, Any]) -> str:
    rows: dict[int, list[tuple[int, str]]] = {}
    for cell in grid.get("cells", []):
        rows.setdefault(cell["row"], []).append((cell["col"], " ".join(str(cell["content"]).split())))
    filled = (row for _, row in sorted(rows.items()) if any(said for _, said in row))
    return "\n".join("\t".join(said for _, said in sorted(row)).rstrip() for row in filled)


def element(node: Node, share: Callable[[Box], Box] | None = None) -> Found:
    """A node as an element; `share` tells where its box is on the page."""
    box = rounded(share(node.box)) if node.box and share else None
    return Found(_LAYERS.get(node.layer) or _TYPES[node.type], text(node), box)


def numbered(found: Sequence[Node], *, ahead: bool = False) -> Iterator[tuple[int, Node]]:
    """Each node with its page; one that names none is on that of its neighbour, `ahead` of it or before."""
    page, given = 1, []
    for node in reversed(found) if ahead else found:
        page = node.page or page
        given.append((page, node))
    return iter(reversed(given) if ahead else given)
