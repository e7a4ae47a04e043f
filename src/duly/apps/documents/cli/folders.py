"""`duly docs`: folders, and whom they are for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

import typer

from duly.app import Duly
from duly.apps.documents.cli.shared import ROOT, FolderPath, folder_id, in_folder, run, visitor
from duly.apps.documents.folders.access import Level
from duly.apps.documents.models import Folder, Grant
from duly.cli.options import ActorName, AppName, AsJson, Org, Reason
from duly.cli.output import Columns, print_json, print_table

_COLUMNS: Columns = {"folder": "node_id", "path": "path", "by": "created_by", "created": "created_at"}
_GRANTS: Columns = {"who": "principal", "level": "level"}


def folders(org: Org, actor: ActorName = None, app: AppName = None, as_json: AsJson = False) -> None:
    """The folders that are open to whoever asks, by their paths."""
    found = run(app, lambda duly: duly.documents.folders.list(visitor(org, actor)))
    print_json({"folders": found}) if as_json else print_table(found, _COLUMNS)


def mkdir(
    path: Annotated[str, typer.Argument(help="As in Contracts/2026.", show_default=False)],
    org: Org,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Make a folder, and those above it that are missing."""
    who = visitor(org, actor)
    names = [name for name in path.split(ROOT) if name]
    if not names:
        raise typer.BadParameter("the root is there already", param_hint="PATH")

    async def make(duly: Duly) -> Folder:
        there = {node.path: node for node in await duly.documents.folders.list(who)}
        made, above = None, None
        for count, name in enumerate(names, 1):
            found = there.get(ROOT.join(names[:count]))
            made = found or await duly.documents.folders.create(who, name, above)
            above = made.node_id
        assert made is not None
        return made

    made = run(app, make)
    print_json(made) if as_json else print(made.node_id)


def mvdir(
    folder: FolderPath,
    org: Org,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    into: Annotated[
        str | None, typer.Option("--into", help="The folder that it lies in then; / is the root.")
    ] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Give a folder another name, or another place."""
    if name is None and into is None:
        raise typer.BadParameter("say a name, or a place", param_hint="--name, --into")
    who = visitor(org, actor)

    async def change(duly: Duly) -> Folder:
        node_id = await in_folder(duly.documents, who, folder)
        place = None if into is None else await folder_id(duly.documents, who, into)
        return await duly.documents.folders.change(
            who, node_id, name=name, move_to=place, moves=into is not None
        )

    changed = run(app, change)
    print_json(changed) if as_json else print_table([changed], _COLUMNS)


def rmdir(
    folder: FolderPath,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Remove an empty folder."""
    who = visitor(org, actor)

    async def remove(duly: Duly) -> None:
        node_id = await in_folder(duly.documents, who, folder)
        await duly.documents.folders.remove(who, node_id, reason=reason)

    run(app, remove)
    print_json({"folder": folder, "removed": True}) if as_json else print("removed")


def grants(
    folder: FolderPath, org: Org, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """Whom a folder is for; nobody named means that it follows the folder that it lies in."""
    who = visitor(org, actor)

    async def find(duly: Duly) -> Sequence[Grant]:
        return await duly.documents.folders.grants(who, await in_folder(duly.documents, who, folder))

    found = run(app, find)
    if as_json:
        print_json({"folder": folder, "grants": found})
    else:
        print_table(found, _GRANTS) if found else print("as the folder that it lies in")


def grant(
    folder: FolderPath,
    org: Org,
    reason: Reason,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", help="As in user:u1=write; read, write or manage. May be given again."),
    ] = None,
    to_all: Annotated[
        bool, typer.Option("--as-above", help="As the folder that it lies in; the root is for everybody.")
    ] = False,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Say whom a folder is for, all of them at once."""
    if bool(to) == to_all:
        raise typer.BadParameter("either --to or --as-above", param_hint="--to")
    who, grants = visitor(org, actor), [_grant(one) for one in to or ()]

    async def set_grants(duly: Duly) -> None:
        node_id = await in_folder(duly.documents, who, folder)
        await duly.documents.folders.set_grants(who, node_id, grants, reason=reason)

    run(app, set_grants)
    print_json({"folder": folder, "grants": grants}) if as_json else print_table(grants, _GRANTS)


def _grant(said: str) -> Grant:
    principal, _, level = said.rpartition("=")
    for known in get_args(Level):
        if level == known and principal:
            return Grant(principal=principal, level=known)
    raise typer.BadParameter("write it as user:u1=write", param_hint="--to")
