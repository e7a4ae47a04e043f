"""The page of a folder: its name and place, and whom it is for."""

from __future__ import annotations

from uuid import UUID

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.documents.shapes import Node
from duly.http.caller import Caller
from duly.http.document_shapes import visitor
from duly.http.pages.choices import folder_options
from duly.http.pages.render import Pages, as_data, fill, language_of
from duly.http.service import Service
from duly.model.access import Scope


async def page(pages: Pages, request: Request, service: Service, who: Caller, node_id: UUID) -> Response:
    """One that is open to them. Who may change what is decided when they do."""
    language, asker, folders = language_of(request), visitor(who), service.documents.folders
    found = await folders.get(asker, node_id)
    grants = [one.model_dump() for one in await folders.grants(asker, node_id)]
    change, grants_change = Markup(), Markup()
    if who.may(Scope.WRITE):
        others = [one for one in await folders.list(asker) if not _is_within(one, found)]
        options = folder_options(language, others, found.parent_id)
        change = fill("folder_change.html", language, name=found.name, folders=options)
        grants_change = fill("folder_grants.html", language)
    return pages.page(
        request,
        "folder",
        title=found.name,
        node_id=found.node_id,
        parent_id=found.parent_id or "",
        path=found.path,
        grants=as_data({"given": grants, "write": bool(change)}),
        change=change,
        grants_change=grants_change,
    )


def _is_within(one: Node, folder: Node) -> bool:
    """Whether it is the folder, or lies below it: a folder cannot lie there."""
    return one.path == folder.path or one.path.startswith(f"{folder.path}/")
