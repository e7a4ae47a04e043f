"""The search page: hits are shown as text with the matching words marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.models import Folder
from duly.apps.documents.page_choices import type_choices, type_param
from duly.apps.documents.request_models import document_principal
from duly.apps.documents.search.models import Filters
from duly.apps.documents.search.search import MAX_OFFSET
from duly.core.errors import ContractError
from duly.core.principal import Scope
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages

_PAGE_SIZE = 20
_LANGUAGES = ("de", "en")


class _SearchRequest(NamedTuple):
    """A query, and where to search."""

    query: str
    node_id: UUID | None
    doc_type: str | None
    language: str | None
    offset: int

    @classmethod
    def of(cls, request: Request, folders: Sequence[Folder]) -> Self:
        param = request.query_params.get
        folder = next((one for one in folders if str(one.node_id) == param("folder")), None)
        language = next((one for one in _LANGUAGES if one == param("language")), None)
        digits = param("offset") or ""
        offset = int(digits) if digits.isdecimal() and len(digits) < 6 else 0
        return cls(
            (param("q") or "").strip(),
            folder.node_id if folder else None,
            type_param(param("doc_type")),
            language,
            min(offset, MAX_OFFSET),
        )

    def filters(self) -> Filters:
        """Return the filters for the search."""
        return Filters(
            nodes=(self.node_id,) if self.node_id else None,
            doc_types=(self.doc_type,) if self.doc_type else None,
            languages=(self.language,) if self.language else None,
        )

    def address(self, offset: int) -> str:
        """Return the query string of the same search at another offset."""
        params = {"q": self.query, "folder": self.node_id or "", "doc_type": self.doc_type or ""}
        return urlencode({**params, "language": self.language or "", "offset": offset})


async def page(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the form, and the hits of a query."""
    principal = document_principal(requester)
    folders = await service.documents.folders.list(principal)
    search = _SearchRequest.of(request, folders)
    found, refused = None, None
    if search.query:
        try:
            found = await service.documents.search(
                principal, search.query, search.filters(), limit=_PAGE_SIZE, offset=search.offset
            )
        except ContractError as error:
            refused = error.message
    return pages.page(
        request,
        "search",
        query=search.query,
        folders=folders,
        folder_id=search.node_id,
        doc_type=search.doc_type,
        language=search.language,
        found=found,
        refused=refused,
        first=search.address(0) if search.offset else None,
        more=search.address(search.offset + _PAGE_SIZE) if found and found.more else None,
        export=search.address(0),
        may_write=requester.may(Scope.WRITE),
        **type_choices(request, search.doc_type),
    )
