"""The pages of documents: the list, where files are uploaded, and the page of a document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, get_args
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.consent import REMOTE_ENGINES
from duly.apps.documents.errors import unknown_folder
from duly.apps.documents.library.service import MAX_FILE_SIZE
from duly.apps.documents.models import DocumentStatus, Folder
from duly.apps.documents.page_choices import folder_tree, type_choices, type_param
from duly.apps.documents.request_models import document_principal
from duly.apps.documents.uploads.service import PART_SIZE
from duly.core.principal import Scope
from duly.core.states import EventType
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages, to_json

_LOCAL_ENGINES = ("fast", "hires")
_PAGE_SIZE = 25
_ROOT = "root"


class _LibraryFilter(NamedTuple):
    """The filter of the address; values that make no sense are ignored."""

    folder: Folder | None
    in_root: bool
    doc_type: str | None
    status: DocumentStatus | None

    @classmethod
    def of(cls, request: Request, folders: Sequence[Folder]) -> Self:
        param = request.query_params.get
        folder_param = param("folder") or ""
        folder = next((one for one in folders if str(one.node_id) == folder_param), None)
        if folder_param not in ("", _ROOT) and folder is None:
            raise unknown_folder()
        status = next((one for one in get_args(DocumentStatus) if one == param("status")), None)
        return cls(folder, folder_param == _ROOT, type_param(param("doc_type")), status)

    @property
    def node_id(self) -> UUID | None:
        return self.folder.node_id if self.folder else None

    @property
    def folder_param(self) -> str:
        """The folder as the address names it."""
        return _ROOT if self.in_root else str(self.node_id or "")

    def query(self, **more: str) -> str:
        """Return the query string of the same filter."""
        params = {"folder": self.folder_param, "doc_type": self.doc_type or "", "status": self.status or ""}
        return urlencode({**params, **more})


async def documents(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the newest documents of the filter, or those after a cursor."""
    principal = document_principal(requester)
    folders = await service.documents.folders.list(principal)
    chosen = _LibraryFilter.of(request, folders)
    after = request.query_params.get("after") or None
    found = await service.documents.list(
        principal,
        node_id=chosen.node_id,
        in_root=chosen.in_root,
        doc_type=chosen.doc_type,
        status=chosen.status,
        after=after,
        limit=_PAGE_SIZE,
    )
    return pages.page(
        request,
        "documents",
        tree=folder_tree(folders),
        folder=chosen.folder,
        folder_param=chosen.folder_param,
        in_root=chosen.in_root,
        doc_type=chosen.doc_type,
        status=chosen.status,
        statuses=get_args(DocumentStatus),
        documents=found.documents,
        query=chosen.query(),
        first=chosen.query() if after else None,
        more=chosen.query(after=found.after) if found.after else None,
        may_write=requester.may(Scope.WRITE),
        limits={
            "whole": min(PART_SIZE, service.options.upload_max),
            "file": MAX_FILE_SIZE,
            "node_id": chosen.node_id and str(chosen.node_id),
        },
        **type_choices(request, chosen.doc_type),
    )


async def document(
    pages: Pages, request: Request, service: Service, requester: Requester, document_id: UUID
) -> Response:
    """Show a document; its script reads what changes."""
    principal = document_principal(requester)
    documents, options = service.documents, service.documents.options
    document = await documents.get(principal, document_id)
    may_write = requester.may(Scope.WRITE)
    remote = sorted(REMOTE_ENGINES) if options.unstructured_url is not None else []
    return pages.page(
        request,
        "document",
        title=document.name,
        document=document,
        folder=await documents.folders.get(principal, document.node_id) if document.node_id else None,
        folders=await documents.folders.list(principal) if may_write else (),
        event_types=[event.value for event in EventType],
        may_write=may_write,
        has_classifier=options.classifier is not None,
        engines=[*_LOCAL_ENGINES, *remote],
        cents_per_page={engine: options.cents_per_page.get(engine, 0.0) for engine in remote},
        metadata=_metadata_text(document.metadata),
        limits={
            "whole": min(PART_SIZE, service.options.upload_max),
            "file": MAX_FILE_SIZE,
            "document_id": str(document.document_id),
        },
        **type_choices(request),
    )


def _metadata_text(metadata: Mapping[str, Any]) -> str:
    """Return a line `name=value` for each field, as on the command line; else all of it as JSON."""
    if any("=" in name or not name.isprintable() for name in metadata):
        return to_json(metadata)
    return "\n".join(f"{name}={_value_text(value)}" for name, value in metadata.items())


def _value_text(value: Any) -> str:
    """Return a text as it is, unless it would be read as another JSON value."""
    if isinstance(value, str) and value.isprintable() and value == value.strip():
        try:
            json.loads(value)
        except ValueError:
            return value
    return to_json(value)
