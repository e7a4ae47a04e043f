"""The page of connectors and imports."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.request_models import document_principal
from duly.core.principal import Scope
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages

_PROVIDERS = {"dropbox": "Dropbox", "onedrive": "OneDrive", "gdrive": "Google Drive"}


async def page(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the connectors; admins create and remove them, members with the scope write start imports."""
    principal = document_principal(requester)
    folders = await service.documents.folders.list(principal)
    return pages.page(
        request,
        "connectors",
        connectors=await service.documents.connectors.list(principal),
        folders=folders,
        paths={folder.node_id: folder.path for folder in folders},
        providers=_PROVIDERS,
        may_write=requester.may(Scope.WRITE),
        may_admin=requester.may(Scope.ADMIN),
    )
