"""Kinds that xberg reads at once: texts, tables, presentations, pages of the web, messages of Outlook."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from duly.apps.documents.engines.reader import media_types as kinds
from duly.apps.documents.engines.reader import webpage
from duly.apps.documents.engines.reader import xberg_adapter as structure
from duly.apps.documents.engines.reader.models import Found, Read, Task, page
from duly.apps.documents.engines.reader.xberg_adapter import Node

_LONGEST_TITLE = 150
_NOTES = "Notes:"
_ATTACHED = "Attachments:"


def read(data: bytes, kind: str, pictured: Container[int] = ()) -> list[Read]:
    """Its pages: of a table book the sheets, of a presentation the slides, of a text where it breaks."""
    found = structure.read(data, kind)
    pages: dict[int, list[Node]] = {number: [] for number in range(1, found.pages + 1)}
    for number, node in structure.numbered(found.nodes, ahead=kind in (kinds.XLSX, kinds.ODS)):
        pages.setdefault(number, []).append(node)
    dressed = _slide if kind == kinds.PPTX else _elements
    return [
        page(number, dressed(nodes), pictured=number in pictured) for number, nodes in sorted(pages.items())
    ]


def message(data: bytes) -> list[Read]:
    """A message of Outlook; what is attached is named."""
    elements = _elements(structure.read(data, kinds.MSG).nodes)
    at = next((i for i, e in enumerate(elements) if e.text == _ATTACHED), None)
    if at is None:
        return [page(1, elements)]
    attached = [replace(e, type="ListItem") for e in elements[at + 1 :]]
    return [page(1, [*elements[:at], *attached], ("mail.attachments",))]


def html(text: str, task: Task) -> list[Found]:
    """A page of the web."""
    return webpage.read(text, task.limit("depth_max"))


def _elements(nodes: Sequence[Node]) -> list[Found]:
    return [structure.element(node) for node in nodes if structure.text(node)]


def _slide(nodes: Sequence[Node]) -> list[Found]:
    """Xberg does not say which text is the title of a slide; it is the first."""
    elements = [e for e in _elements(nodes) if e.text != _NOTES]
    if elements and elements[0].type == "NarrativeText" and len(elements[0].text) <= _LONGEST_TITLE:
        elements[0] = replace(elements[0], type="Title")
    return elements
