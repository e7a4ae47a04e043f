"""`duly docs`: accounts elsewhere, and what is brought in from there."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.cli.extraction import Wait, follow
from duly.apps.documents.cli.shared import ROOT, IntoFolder, folder_id, run, visitor
from duly.apps.documents.imports.providers.remote import Provider
from duly.apps.documents.imports.service import Connector
from duly.apps.documents.imports.target_folders import Keeping
from duly.cli.options import ActorName, AppName, AsJson, Org, Reason
from duly.cli.output import Columns, print_json, print_table

_COLUMNS: Columns = {
    "connector": "connector_id",
    "provider": "provider",
    "name": "name",
    "account": "account",
    "secret": "secret_ref",
    "folder": "node_id",
    "disabled": "disabled_at",
    "last import": "last_import_at",
}
ConnectorId = Annotated[UUID, typer.Argument(metavar="CONNECTOR", help="Its id.", show_default=False)]


def connectors(org: Org, actor: ActorName = None, app: AppName = None, as_json: AsJson = False) -> None:
    """The accounts elsewhere that documents are brought in from."""
    found = run(app, lambda duly: duly.documents.connectors.list(visitor(org, actor)))
    print_json({"connectors": found}) if as_json else print_table(found, _COLUMNS)


def connect(
    provider: Annotated[Provider, typer.Argument(show_default=False)],
    name: Annotated[str, typer.Argument(help="What to call it.", show_default=False)],
    org: Org,
    secret: Annotated[
        str,
        typer.Option("--secret-ref", help="What its secret is called, as file:dropbox; never the secret."),
    ],
    folder: IntoFolder = ROOT,
    account: Annotated[str | None, typer.Option(help="The account as people know it.")] = None,
    drive: Annotated[str | None, typer.Option(help="A drive of it; else its own.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Let documents be brought in from an account elsewhere."""
    who = visitor(org, actor)

    async def create(duly: Duly) -> Connector:
        node_id = await folder_id(duly.documents, who, folder)
        return await duly.documents.connectors.create(
            who, provider, name, secret, node_id=node_id, account=account, drive=drive
        )

    _show(run(app, create), as_json)


def disable(
    connector: ConnectorId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Bring nothing in through a connector any more."""
    who = visitor(org, actor)
    _show(run(app, lambda duly: duly.documents.connectors.disable(who, connector, reason=reason)), as_json)


def enable(
    connector: ConnectorId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Let a connector be used again."""
    who = visitor(org, actor)
    _show(run(app, lambda duly: duly.documents.connectors.enable(who, connector, reason=reason)), as_json)


def disconnect(
    connector: ConnectorId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Forget a connector; its documents stay, and so does the secret."""
    run(app, lambda duly: duly.documents.connectors.remove(visitor(org, actor), connector, reason=reason))
    print_json({"connector_id": connector, "removed": True}) if as_json else print("removed")


def bring_in(
    connector: ConnectorId,
    org: Org,
    path: Annotated[str, typer.Option("--path", help="A folder there; else all of it.")] = "",
    files: Annotated[
        list[str] | None, typer.Option("--file", help="A file of it; may be given again. Else all.")
    ] = None,
    folders: Annotated[
        Keeping, typer.Option("--folders", help="Subfolders become folders here, or all goes into one.")
    ] = "keep",
    wait: Wait = False,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have a folder brought in, or files of it; only what has changed since."""
    who = visitor(org, actor)

    async def begin(duly: Duly) -> UUID:
        handle = await duly.documents.connectors.begin_import(
            who, connector, remote_path=path, files=files or (), folders=folders
        )
        return handle.job_id

    follow(app, org, begin, wait=wait, as_json=as_json)


def _show(connector: Connector, as_json: bool) -> None:
    print_json(connector) if as_json else print_table([connector], _COLUMNS)
