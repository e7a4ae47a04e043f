"""The pages that review the types of documents, and file each type into a folder."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.page_choices import type_choices
from duly.apps.documents.request_models import document_principal
from duly.core.principal import Scope
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages

_PAGE_SIZE = 20


async def review(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the documents whose type needs a review, newest first."""
    after = request.query_params.get("after") or None
    found = await service.documents.classification.review(
        document_principal(requester), after=after, limit=_PAGE_SIZE
    )
    return pages.page(
        request,
        "review",
        items=found.unsure,
        more=urlencode({"after": found.after}) if found.after else None,
        may_write=requester.may(Scope.WRITE),
        **type_choices(request),
    )


async def filing(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show which folder is suggested for documents of each type."""
    principal = document_principal(requester)
    folders = await service.documents.folders.list(principal)
    return pages.page(
        request,
        "filing",
        rules=await service.documents.classification.filing(principal),
        folders=folders,
        paths={folder.node_id: folder.path for folder in folders},
        may_write=requester.may(Scope.WRITE),
        **type_choices(request),
    )
