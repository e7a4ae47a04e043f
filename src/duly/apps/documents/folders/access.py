"""Access to documents, by the folder that they are in: which folders are hidden, and which are read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from duly.apps.documents.errors import unknown_folder
from duly.apps.documents.schema import Connection, fetch_one
from duly.core.errors import Forbidden
from duly.core.job import Actor

Level = Literal["read", "write", "manage"]


class DocumentPrincipal(NamedTuple):
    """An actor of an org; folders grant access to it by its name."""

    org_id: UUID
    actor: Actor

    @property
    def name(self) -> str:
        """The name in grants: `user:u1`, `api_key:k1`, `system:import`."""
        return f"{self.actor.type}:{self.actor.id}"


class FolderAccess(NamedTuple):
    """The folders of an org that restrict a principal; usually none."""

    hidden: Sequence[UUID]
    """Folders that the principal may not see."""
    read_only: Sequence[UUID]
    """Folders in which the principal may not change anything, hidden ones included."""


async def folder_access(conn: Connection, principal: DocumentPrincipal) -> FolderAccess:
    """Return the hidden and the read-only folders in one statement."""
    row = await fetch_one(conn, "nodes/read_access", {"principal": principal.name})
    return FolderAccess(*row) if row else FolderAccess((), ())


async def hidden_folders(conn: Connection, principal: DocumentPrincipal) -> Sequence[UUID]:
    """Return the folders that the principal may not see."""
    return await _restricted_folders(conn, principal, "read")


async def read_only_folders(conn: Connection, principal: DocumentPrincipal) -> Sequence[UUID]:
    """Return the folders in which the principal may not change anything, hidden ones included."""
    return await _restricted_folders(conn, principal, "write")


async def _restricted_folders(conn: Connection, principal: DocumentPrincipal, level: Level) -> list[UUID]:
    row = await fetch_one(conn, "nodes/list_restricted", {"principal": principal.name, "level": level})
    return list(row[0]) if row else []


async def is_admin(conn: Connection, principal: DocumentPrincipal) -> bool:
    """Return whether the principal may do everything in every folder."""
    row = await fetch_one(conn, "nodes/is_admin", {"principal": principal.name})
    return row is not None and bool(row[0])


async def check_folders_visible(
    conn: Connection, principal: DocumentPrincipal, folder_ids: Sequence[UUID], field: str = "node_id"
) -> None:
    """Raise unless all of these are folders that the principal may see."""
    if not folder_ids:
        return
    hidden = await hidden_folders(conn, principal)
    values = {"org_id": principal.org_id, "nodes": list(folder_ids), "hidden_folders": hidden}
    row = await fetch_one(conn, "nodes/count_visible", values)
    if row is None or row[0] < len(set(folder_ids)):
        raise unknown_folder(field)


async def check_folder_writable(
    conn: Connection,
    principal: DocumentPrincipal,
    folder_id: UUID | None,
    access: FolderAccess | None = None,
    field: str = "node_id",
) -> None:
    """Raise unless the principal may write to the folder; None is the root, which is open to all.

    `access` saves a statement if the caller has read it already.
    """
    if folder_id is None:
        return
    access = access or await folder_access(conn, principal)
    if folder_id in access.hidden:
        raise unknown_folder(field)
    if folder_id in access.read_only:
        raise Forbidden("you may only read this folder", field=field, fix="ask for write access")
    if await fetch_one(conn, "nodes/exists", {"org_id": principal.org_id, "node_id": folder_id}) is None:
        raise unknown_folder(field)
