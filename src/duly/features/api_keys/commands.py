"""Commands of API keys: `duly api-keys`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.options import Change, Owner, Paging, argument, time_option
from duly.cli.output import Output, columns
from duly.core.principal import Scope
from duly.features.api_keys.models import ApiKey, ApiKeyPage

api_keys = Group("api-keys", "Manage API keys.")
KeyId = Annotated[str, argument("Select the key by its id, the third part of its text.")]


@api_keys.command(
    "list",
    columns=columns(
        *("key_id", "name", "environment", "scopes", "alive", "expires_at", "revoked_at", "last_used_at"),
        *("created_by", "created_at"),
    ),
)
async def list_keys(duly: Duly, org: Owner, paging: Paging) -> ApiKeyPage:
    """List the API keys of an org, also expired and revoked ones."""
    return await duly.api_keys.list(org, **paging)


@api_keys.command()
async def create(
    duly: Duly,
    name: Annotated[str, argument("Set the name of the key.")],
    org: Owner,
    change: Change,
    scopes: Annotated[list[Scope], typer.Option("--scope", help="Allow this scope; repeatable.")],
    environment: Annotated[str, typer.Option(help="Set a word that the key shows.")] = "live",
    expires_at: Annotated[
        datetime | None, time_option("--expires-at", "Expire the key at this time.")
    ] = None,
) -> Output:
    """Create an API key and print it; it is shown only once."""
    key = await duly.api_keys.create(
        org, name, scopes, environment=environment, expires_at=expires_at, **change
    )
    return Output(key, key.text)


@api_keys.command()
async def rotate(
    duly: Duly,
    key_id: KeyId,
    org: Owner,
    change: Change,
    overlap: Annotated[
        float, typer.Option("--overlap-hours", min=0, max=2160, help="Accept the old key for so long.")
    ] = 24,
) -> Output:
    """Replace an API key by a new one and print it; it is shown only once."""
    key = await duly.api_keys.rotate(org, key_id, overlap=timedelta(hours=overlap), **change)
    return Output(key, key.text)


@api_keys.command()
async def revoke(duly: Duly, key_id: KeyId, org: Owner, change: Change) -> ApiKey:
    """Revoke an API key at once."""
    return await duly.api_keys.revoke(org, key_id, **change)
