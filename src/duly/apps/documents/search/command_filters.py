"""The filters of `duly docs search` and `duly docs export`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from pydantic import ValidationError

from duly.apps.documents.command_group import find_folder, parse_metadata
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.search.models import Filters
from duly.cli.options import Depends, time_option

if TYPE_CHECKING:
    from duly.apps.documents.service import Documents

FolderFilter = Annotated[
    list[str] | None, typer.Option("--folder", help="Filter by folder and those below; repeatable.")
]


def _filters(
    doc_type: Annotated[
        list[str] | None, typer.Option("--type", help="Filter by type, as in invoice; repeatable.")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option("--language", help="Filter by language, as in de; repeatable.")
    ] = None,
    element: Annotated[
        list[str] | None, typer.Option("--element", help="Filter by element, as in Table; repeatable.")
    ] = None,
    page_from: Annotated[int | None, typer.Option(min=1, help="Select passages from this page on.")] = None,
    page_to: Annotated[int | None, typer.Option(min=1, help="Select passages up to this page.")] = None,
    created_from: Annotated[
        datetime | None, time_option("--created-from", "Select documents created at this time or later.")
    ] = None,
    created_to: Annotated[
        datetime | None, time_option("--created-to", "Select documents created before this time.")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="Filter by NAME=VALUE; repeatable.")
    ] = None,
) -> Filters:
    values = {
        "doc_types": doc_type,
        "languages": language,
        "element_types": element,
        "page_from": page_from,
        "page_to": page_to,
        "created_from": created_from,
        "created_to": created_to,
        "metadata": parse_metadata(metadata),
    }
    try:
        return Filters.model_validate({name: value for name, value in values.items() if value})
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"]) from None


FilterOptions = Annotated[Filters, Depends(_filters)]


async def filter_folders(
    documents: Documents, principal: DocumentPrincipal, filters: Filters, folders: Sequence[str] | None
) -> Filters:
    """Return the filters with folders; the root selects all of them."""
    ids: list[UUID | None] = [await find_folder(documents, principal, folder) for folder in folders or ()]
    nodes = () if None in ids else tuple(filter(None, ids))
    return filters.model_copy(update={"nodes": nodes}) if nodes else filters
