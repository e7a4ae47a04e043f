"""Presentations of OpenDocument. Xberg reads them as one page; here each slide is one."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import chain
from xml.etree import ElementTree

from duly.apps.documents.engines.reader.models import Found, Read, page

_DRAW, _TEXT, _TABLE, _SHOW = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("drawing", "text", "table", "presentation")
)
_BREAKS = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_PARAGRAPHS = (f"{_TEXT}p", f"{_TEXT}h")


def read(path: str) -> list[Read]:
    """Its slides, each with its notes. The archive was looked through before."""
    with zipfile.ZipFile(path) as archive, archive.open("content.xml") as content:
        root = ElementTree.parse(content).getroot()  # noqa: S314 - it declares no entities, and is not deep
    return [_slide(number, slide) for number, slide in enumerate(root.iter(f"{_DRAW}page"), 1)]


def _slide(number: int, slide: ElementTree.Element) -> Read:
    pictures = sum(1 for _ in slide.iter(f"{_DRAW}image"))
    return page(number, list(_elements(slide, "NarrativeText")), pictured=pictures > 0)


def _elements(node: ElementTree.Element, kind: str) -> Iterator[Found]:
    if node.tag in _PARAGRAPHS:
        yield Found(kind, _said(node).strip())
        return
    if node.tag == f"{_TABLE}table":
        yield Found("Table", "\n".join(_row(row) for row in node.iter(f"{_TABLE}table-row")).strip("\n"))
        return
    if node.get(f"{_SHOW}class") == "title":
        kind = "Title"
    if node.tag == f"{_TEXT}list-item":
        kind = "ListItem"
    yield from chain.from_iterable(_elements(inner, kind) for inner in node)


def _row(row: ElementTree.Element) -> str:
    cells = (" ".join(_said(cell).split()) for cell in row.iter(f"{_TABLE}table-cell"))
    return "\t".join(cells).rstrip()


def _said(node: ElementTree.Element) -> str:
    """Its text; spaces beside one another, tabs and line breaks are elements of their own."""
    parts = [_BREAKS.get(node.tag, ""), node.text or ""]
    for inner in node:
        parts += [_said(inner), " " if inner.tag in _PARAGRAPHS else "", inner.tail or ""]
    return "".join(parts)
