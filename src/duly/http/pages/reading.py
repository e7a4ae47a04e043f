"""The page of a document: what it is, how it is read, its text and its versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.documents.extraction.asking import REMOTE
from duly.documents.library import BYTES_MAX
from duly.documents.options import DocumentOptions
from duly.documents.shapes import Document
from duly.documents.uploads import PART_SIZE
from duly.http.caller import Caller
from duly.http.document_shapes import visitor
from duly.http.pages.choices import folder_options, type_options
from duly.http.pages.render import Pages, as_data, fill, language_of
from duly.http.service import Service
from duly.model.access import Scope
from duly.model.events import EventType


async def page(pages: Pages, request: Request, service: Service, who: Caller, document_id: UUID) -> Response:
    """One that they may see. What changes is read by the page itself."""
    language, base = language_of(request), service.path(request)
    document = await service.documents.get(visitor(who), document_id)
    may_write = who.may(Scope.WRITE)
    return pages.page(
        request,
        "document",
        title=document.name,
        file=document.name,
        document_id=document.document_id,
        names=as_data([event.value for event in EventType]),
        may=as_data({"write": may_write}),
        folder=await _folder(service, who, document, language, base),
        change_type=_form("document_type.html", language, may_write, types=type_options(language)),
        read_again=_form(
            "document_engines.html", language, may_write, **_remote(service.documents.options, language)
        ),
        elsewhere=_form(
            "document_elsewhere.html",
            language,
            may_write and service.documents.options.classifier is not None,
        ),
        change=await _change(service, who, document, language) if may_write else Markup(),
        new_version=_form("document_version.html", language, may_write, limits=_limits(service, document)),
        delete=_form("document_delete.html", language, may_write),
    )


async def _folder(service: Service, who: Caller, document: Document, language: str, base: str) -> Markup:
    if document.node_id is None:
        return fill("document_in_root.html", language, base=base)
    folder = await service.documents.folders.get(visitor(who), document.node_id)
    return fill("document_folder.html", language, base=base, node_id=folder.node_id, path=folder.path)


async def _change(service: Service, who: Caller, document: Document, language: str) -> Markup:
    folders = await service.documents.folders.list(visitor(who))
    return fill(
        "document_change.html",
        language,
        name=document.name,
        node_id=document.node_id or "",
        folders=folder_options(language, folders, document.node_id),
        metadata=_lines(document.metadata),
    )


def _lines(metadata: Mapping[str, Any]) -> str:
    """A line for each fact, as they are written on a command line; else all of it as JSON."""
    if any("=" in name or not name.isprintable() for name in metadata):
        return as_data(metadata)
    return "\n".join(f"{name}={_word(value)}" for name, value in metadata.items())


def _word(value: Any) -> str:
    """A text stands for itself, unless it would be read as something else."""
    if isinstance(value, str) and value.isprintable() and value == value.strip():
        try:
            json.loads(value)
        except ValueError:
            return value
    return as_data(value)


def _limits(service: Service, document: Document) -> str:
    whole = min(PART_SIZE, service.options.upload_max)
    return as_data({"whole": whole, "file": BYTES_MAX, "document_id": str(document.document_id)})


def _form(template: str, language: str, may_write: bool, **values: object) -> Markup:
    return fill(template, language, **values) if may_write else Markup()


def _remote(options: DocumentOptions, language: str) -> dict[str, object]:
    """Engines that send files elsewhere, where there is such a service; and what they take for a page."""
    if options.unstructured_url is None:
        return {"cents": "{}", "remote": Markup()}
    cents = {engine: options.cents_per_page.get(engine, 0.0) for engine in sorted(REMOTE)}
    return {"cents": as_data(cents), "remote": fill("document_remote.html", language)}
