"""The page with the documents of an org, by folder, type and status; files are uploaded here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, get_args
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.errors import unknown_folder
from duly.apps.documents.http.models import visitor
from duly.apps.documents.library.service import BYTES_MAX
from duly.apps.documents.models import DocumentStatus, Folder
from duly.apps.documents.pages.choices import folder_tree, type_choices, type_param
from duly.apps.documents.uploads.service import PART_SIZE
from duly.core.principal import Scope
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages

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


async def page(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the newest documents of the filter, or those after a cursor."""
    reader = visitor(requester)
    folders = await service.documents.folders.list(reader)
    chosen = _LibraryFilter.of(request, folders)
    after = request.query_params.get("after") or None
    found = await service.documents.list(
        reader,
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
            "file": BYTES_MAX,
            "node_id": chosen.node_id and str(chosen.node_id),
        },
        **type_choices(request, chosen.doc_type),
    )
