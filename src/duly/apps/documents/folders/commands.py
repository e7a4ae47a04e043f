"""`duly docs`: folders and the access to them."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from duly.app import Duly
from duly.apps.documents.command_group import (
    ROOT,
    FolderPath,
    NewName,
    Principal,
    docs,
    find_folder,
    find_subfolder,
)
from duly.apps.documents.folders.access import Level
from duly.apps.documents.models import Folder, Grant
from duly.cli.command import Rows
from duly.cli.options import Reason, argument
from duly.cli.output import Output, columns, print_table

_GRANTS = columns("principal", "level")


@docs.command(columns=columns("node_id", "path", "created_at", by="created_by"))
async def folders(duly: Duly, principal: Principal) -> Rows:
    """List the folders that the actor may see, by path."""
    return {"folders": await duly.documents.folders.list(principal)}


@docs.command()
async def mkdir(
    duly: Duly, path: Annotated[str, argument("Name the folder, as in Contracts/2026.")], principal: Principal
) -> Output:
    """Create a folder, and missing folders above it."""
    names = [name for name in path.split(ROOT) if name]
    if not names:
        raise typer.BadParameter("the root exists already", param_hint="PATH")
    existing = {folder.path: folder for folder in await duly.documents.folders.list(principal)}
    folder: Folder | None = None
    for depth, name in enumerate(names, 1):
        parent_id = folder.node_id if folder else None
        folder = existing.get(ROOT.join(names[:depth])) or await duly.documents.folders.create(
            principal, name, parent_id
        )
    assert folder is not None
    return Output(folder, str(folder.node_id))


@docs.command()
async def mvdir(
    duly: Duly,
    folder: FolderPath,
    principal: Principal,
    name: NewName = None,
    into: Annotated[
        str | None, typer.Option("--into", help="Select the new parent folder; / is the root.")
    ] = None,
) -> Folder:
    """Update the name or the parent of a folder."""
    if name is None and into is None:
        raise typer.BadParameter("set a name or a parent folder", param_hint="--name, --into")
    return await duly.documents.folders.change(
        principal,
        await find_subfolder(duly.documents, principal, folder),
        name=name,
        move_to=None if into is None else await find_folder(duly.documents, principal, into),
        moves=into is not None,
    )


@docs.command()
async def rmdir(duly: Duly, folder: FolderPath, principal: Principal, reason: Reason) -> Output:
    """Remove an empty folder."""
    node_id = await find_subfolder(duly.documents, principal, folder)
    await duly.documents.folders.remove(principal, node_id, reason=reason)
    return Output({"folder": folder, "removed": True}, "removed")


@docs.command()
async def grants(duly: Duly, folder: FolderPath, principal: Principal) -> Output:
    """List the grants of a folder; without any, its parent's apply."""
    node_id = await find_subfolder(duly.documents, principal, folder)
    found = await duly.documents.folders.grants(principal, node_id)
    text = (lambda: print_table(found, _GRANTS)) if found else "no grants: those of the parent folder apply"
    return Output({"folder": folder, "grants": found}, text)


@docs.command()
async def grant(
    duly: Duly,
    folder: FolderPath,
    principal: Principal,
    reason: Reason,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", help="Allow read, write or manage, as in user:u1=write; repeatable."),
    ] = None,
    as_above: Annotated[
        bool, typer.Option("--as-above", help="Remove all grants; those of the parent folder apply.")
    ] = False,
) -> Output:
    """Replace all grants of a folder."""
    if bool(to) == as_above:
        raise typer.BadParameter("use either --to or --as-above", param_hint="--to")
    new_grants = [_parse_grant(text) for text in to or ()]
    node_id = await find_subfolder(duly.documents, principal, folder)
    await duly.documents.folders.set_grants(principal, node_id, new_grants, reason=reason)
    return Output({"folder": folder, "grants": new_grants}, lambda: print_table(new_grants, _GRANTS))


def _parse_grant(text: str) -> Grant:
    name, _, level = text.rpartition("=")
    for known in get_args(Level):
        if level == known and name:
            return Grant(principal=name, level=known)
    raise typer.BadParameter("write it as user:u1=write", param_hint="--to")
