"""`duly docs`: which passages are asked for, as search and export say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from pydantic import ValidationError

from duly.apps.documents.cli.files import facts
from duly.apps.documents.cli.shared import folder_id
from duly.apps.documents.search.models import Filters
from duly.cli.options import moment

if TYPE_CHECKING:
    from duly.apps.documents.folders.access import DocumentPrincipal
    from duly.apps.documents.service import Documents

Within = Annotated[
    list[str] | None, typer.Option("--folder", help="Only in this one and below; may be given again.")
]
OfType = Annotated[list[str] | None, typer.Option("--type", help="Only of this type, as invoice.")]
InLanguage = Annotated[list[str] | None, typer.Option("--language", help="Only in this language, as de.")]
OfElement = Annotated[
    list[str] | None, typer.Option("--element", help="Only passages of this kind, as Table or Title.")
]
PageFrom = Annotated[int | None, typer.Option("--page-from", min=1, help="Only from this page on.")]
PageTo = Annotated[int | None, typer.Option("--page-to", min=1, help="Only up to this page.")]
CreatedFrom = Annotated[
    str | None, typer.Option("--created-from", help="Not older, as in 2026-11-15T12:00:00Z.")
]
CreatedTo = Annotated[str | None, typer.Option("--created-to", help="Only older ones.")]
Facts = Annotated[list[str] | None, typer.Option("--metadata", help="Only with this, as NAME=VALUE; repeat.")]


def filters(**asked: Any) -> Filters:
    """What was asked for on the command line; folders are looked up later."""
    said = {
        **asked,
        "created_from": moment(asked["created_from"], "--created-from"),
        "created_to": moment(asked["created_to"], "--created-to"),
        "metadata": facts(asked["metadata"]),
    }
    try:
        return Filters.model_validate({name: value for name, value in said.items() if value})
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"]) from None


async def within(
    documents: Documents, who: DocumentPrincipal, chosen: Filters, folders: Sequence[str] | None
) -> Filters:
    """The same in these folders; one that is not there is an error, and / is everywhere."""
    ids: list[UUID | None] = [await folder_id(documents, who, one) for one in folders or ()]
    return (
        chosen.model_copy(update={"nodes": tuple(filter(None, ids)) or None}) if None not in ids else chosen
    )
