"""Office documents: sheets, slides and pages by xberg, and slides of OpenDocument presentations."""

from __future__ import annotations

import zipfile
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from xml.etree import ElementTree

from duly.apps.documents.engines.reader import media_types, xberg_adapter
from duly.apps.documents.engines.reader.models import ReadElement, ReadPage, make_page
from duly.apps.documents.engines.reader.xberg_adapter import Node

_MAX_TITLE_LENGTH = 150
_NOTES = "Notes:"
_ATTACHMENTS = "Attachments:"
_DRAW, _TEXT, _TABLE, _PRESENTATION = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("drawing", "text", "table", "presentation")
)
_WHITE_SPACE = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_PARAGRAPHS = (f"{_TEXT}p", f"{_TEXT}h")


def read_office(data: bytes, media_type: str, pages_with_images: Container[int] = ()) -> list[ReadPage]:
    """Return the sheets of a workbook, the slides of a presentation, or the pages of a text."""
    structure = xberg_adapter.extract(data, media_type)
    pages: dict[int, list[Node]] = {number: [] for number in range(1, structure.pages + 1)}
    is_workbook = media_type in (media_types.XLSX, media_types.ODS)
    for number, node in xberg_adapter.number_nodes(structure.nodes, from_next=is_workbook):
        pages.setdefault(number, []).append(node)
    to_elements = _slide_elements if media_type == media_types.PPTX else xberg_adapter.to_elements
    return [
        make_page(number, to_elements(nodes), has_images=number in pages_with_images)
        for number, nodes in sorted(pages.items())
    ]


def read_outlook_message(data: bytes) -> list[ReadPage]:
    """Return an Outlook message as one page; attachments are listed by name."""
    elements = xberg_adapter.to_elements(xberg_adapter.extract(data, media_types.MSG).nodes)
    start = next((i for i, e in enumerate(elements) if e.text == _ATTACHMENTS), None)
    if start is None:
        return [make_page(1, elements)]
    attachments = [replace(e, type="ListItem") for e in elements[start + 1 :]]
    return [make_page(1, [*elements[:start], *attachments], ("mail.attachments",))]


def _slide_elements(nodes: Sequence[Node]) -> list[ReadElement]:
    """Return the elements of a slide. xberg does not mark its title: it is the first text."""
    elements = [e for e in xberg_adapter.to_elements(nodes) if e.text != _NOTES]
    if elements and elements[0].type == "NarrativeText" and len(elements[0].text) <= _MAX_TITLE_LENGTH:
        elements[0] = replace(elements[0], type="Title")
    return elements


def read_odp(path: str) -> list[ReadPage]:
    """Return the slides of an OpenDocument presentation with their notes; xberg reads it as one page.

    The archive must have been checked before.
    """
    with zipfile.ZipFile(path) as archive, archive.open("content.xml") as content:
        root = ElementTree.parse(content).getroot()  # noqa: S314 - checked: no entities, bounded depth
    return [
        make_page(
            number,
            list(_odp_elements(slide, "NarrativeText")),
            has_images=next(slide.iter(f"{_DRAW}image"), None) is not None,
        )
        for number, slide in enumerate(root.iter(f"{_DRAW}page"), 1)
    ]


def _odp_elements(node: ElementTree.Element, element_type: str) -> Iterator[ReadElement]:
    if node.tag in _PARAGRAPHS:
        yield ReadElement(element_type, _odp_text(node).strip())
        return
    if node.tag == f"{_TABLE}table":
        rows = "\n".join(_odp_row(row) for row in node.iter(f"{_TABLE}table-row"))
        yield ReadElement("Table", rows.strip("\n"))
        return
    if node.get(f"{_PRESENTATION}class") == "title":
        element_type = "Title"
    if node.tag == f"{_TEXT}list-item":
        element_type = "ListItem"
    yield from chain.from_iterable(_odp_elements(child, element_type) for child in node)


def _odp_row(row: ElementTree.Element) -> str:
    cells = (" ".join(_odp_text(cell).split()) for cell in row.iter(f"{_TABLE}table-cell"))
    return "\t".join(cells).rstrip()


def _odp_text(node: ElementTree.Element) -> str:
    """Return the text of a node; repeated spaces, tabs and line breaks are elements in OpenDocument."""
    parts = [_WHITE_SPACE.get(node.tag, ""), node.text or ""]
    for child in node:
        parts += [_odp_text(child), " " if child.tag in _PARAGRAPHS else "", child.tail or ""]
    return "".join(parts)
