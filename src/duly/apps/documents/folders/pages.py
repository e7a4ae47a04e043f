"""The page of a folder: name, parent and grants."""

from __future__ import annotations

from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.models import Folder
from duly.apps.documents.request_models import document_principal
from duly.core.principal import Scope
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages


async def page(
    pages: Pages, request: Request, service: Service, requester: Requester, node_id: UUID
) -> Response:
    """Show a visible folder; changes are authorised when they are made."""
    principal, folders = document_principal(requester), service.documents.folders
    folder = await folders.get(principal, node_id)
    may_write = requester.may(Scope.WRITE)
    others = await folders.list(principal) if may_write else ()
    return pages.page(
        request,
        "folder",
        title=folder.name,
        folder=folder,
        folders=[other for other in others if not _is_within(other, folder)],
        grants=[grant.model_dump() for grant in await folders.grants(principal, node_id)],
        may_write=may_write,
    )


def _is_within(other: Folder, folder: Folder) -> bool:
    """Return whether it is the folder, or below it: a folder cannot be moved there."""
    return other.path == folder.path or other.path.startswith(f"{folder.path}/")
