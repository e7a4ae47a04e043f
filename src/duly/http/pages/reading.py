"""The page of a document: what it is, how it is read, its text and its versions."""

from __future__ import annotations

from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from duly.documents.extraction.asking import REMOTE
from duly.documents.options import DocumentOptions
from duly.documents.shapes import Document
from duly.http.caller import Caller
from duly.http.document_shapes import visitor
from duly.http.pages.choices import type_options
from duly.http.pages.render import Pages, Safe, as_data, fill, language_of
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
        delete=_form("document_delete.html", language, may_write),
    )


async def _folder(service: Service, who: Caller, document: Document, language: str, base: str) -> Safe:
    if document.node_id is None:
        return fill("document_in_root.html", language, base=base)
    folder = await service.documents.folders.get(visitor(who), document.node_id)
    return fill("document_folder.html", language, base=base, node_id=folder.node_id, path=folder.path)


def _form(template: str, language: str, may_write: bool, **values: object) -> Safe:
    return fill(template, language, **values) if may_write else Safe()


def _remote(options: DocumentOptions, language: str) -> dict[str, object]:
    """Engines that send files elsewhere, where there is such a service; and what they take for a page."""
    if options.unstructured_url is None:
        return {"cents": "{}", "remote": Safe()}
    cents = {engine: options.cents_per_page.get(engine, 0.0) for engine in sorted(REMOTE)}
    return {"cents": as_data(cents), "remote": fill("document_remote.html", language)}
