"""`duly docs`: connectors, and imports through them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.command_group import ROOT, JobFollower, Principal, TargetFolder, docs, find_folder
from duly.apps.documents.imports.models import Connector, FolderMode
from duly.apps.documents.imports.providers.remote import Provider
from duly.cli.command import Rows
from duly.cli.options import Reason, argument
from duly.cli.output import Output, columns

ConnectorId = Annotated[UUID, argument("Select the connector by its id.", "CONNECTOR")]


@docs.command(
    columns=columns(
        *("connector_id", "provider", "name", "account", "secret_ref", "disabled_at", "last_import_at"),
        folder="node_id",
    )
)
async def connectors(duly: Duly, principal: Principal) -> Rows:
    """List the connectors."""
    return {"connectors": await duly.documents.connectors.list(principal)}


@docs.command()
async def connect(
    duly: Duly,
    provider: Annotated[Provider, argument("Choose the provider.")],
    name: Annotated[str, argument("Name the connector.")],
    principal: Principal,
    secret_ref: Annotated[
        str, typer.Option(help="Name the secret, as in file:dropbox; never the secret itself.")
    ],
    folder: TargetFolder = ROOT,
    account: Annotated[str | None, typer.Option(help="Name the account, for people.")] = None,
    drive: Annotated[str | None, typer.Option(help="Select a drive other than the account's own.")] = None,
) -> Connector:
    """Create a connector to an account at a provider."""
    return await duly.documents.connectors.create(
        principal,
        provider,
        name,
        secret_ref,
        node_id=await find_folder(duly.documents, principal, folder),
        account=account,
        drive=drive,
    )


@docs.command()
async def enable(duly: Duly, connector: ConnectorId, principal: Principal, reason: Reason) -> Connector:
    """Enable a connector again."""
    return await duly.documents.connectors.enable(principal, connector, reason=reason)


@docs.command()
async def disable(duly: Duly, connector: ConnectorId, principal: Principal, reason: Reason) -> Connector:
    """Disable a connector; imports through it are refused."""
    return await duly.documents.connectors.disable(principal, connector, reason=reason)


@docs.command()
async def disconnect(duly: Duly, connector: ConnectorId, principal: Principal, reason: Reason) -> Output:
    """Delete a connector; its documents and its secret stay."""
    await duly.documents.connectors.remove(principal, connector, reason=reason)
    return Output({"connector_id": connector, "removed": True}, "removed")


@docs.command("import")
async def import_files(
    duly: Duly,
    connector: ConnectorId,
    principal: Principal,
    follower: JobFollower,
    path: Annotated[str, typer.Option("--path", help="Select a remote folder.", show_default="root")] = "",
    files: Annotated[
        list[str] | None,
        typer.Option("--file", help="Select a file of the folder; repeatable.", show_default="all"),
    ] = None,
    folders: Annotated[
        FolderMode, typer.Option("--folders", help="Choose whether remote folders become folders.")
    ] = "keep",
) -> Output | None:
    """Add the changed files of a remote folder as documents."""
    handle = await duly.documents.connectors.begin_import(
        principal, connector, remote_path=path, files=files or (), folders=folders
    )
    return await follower.follow(duly, principal, handle.job_id)
