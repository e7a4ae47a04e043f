"""Folders of an org: create, list, rename, move and remove them, and grant access to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.errors import ForeignKeyViolation

from duly.apps.documents.errors import FolderNotEmpty, NameTaken, unknown_folder
from duly.apps.documents.folders.access import (
    DocumentPrincipal,
    FolderAccess,
    check_folder_writable,
    folder_access,
    hidden_folders,
)
from duly.apps.documents.library.filing import checked_name
from duly.apps.documents.models import Folder, Grant
from duly.apps.documents.principal_service import PrincipalService
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.core.errors import ContractError, Forbidden, LimitExceeded

_MAX_DEPTH = 20
_MAX_GRANTS = 200
_MAX_FOLDERS = 10_000


class Folders(PrincipalService):
    """The folders that a principal may see, change or manage."""

    async def create(self, principal: DocumentPrincipal, name: str, parent_id: UUID | None = None) -> Folder:
        """Create a folder in another one, or in the root."""
        values = {"org_id": principal.org_id, "parent_id": parent_id, "name": checked_name(name)}
        async with self._session(principal) as conn:
            access = await self._lock(conn, principal)
            await check_folder_writable(conn, principal, parent_id, access, "parent_id")
            await self._check_limits(conn, principal, parent_id, 1)
            await self._check_name(conn, {**values, "node_id": None, "moves": True}, access)
            row = await fetch_one(conn, "nodes/insert", {**values, "created_by": principal.name})
            assert row is not None
            await self._record(conn, principal, "folder.created", row[0], name=name)
        return await self.get(principal, row[0])

    async def list(self, principal: DocumentPrincipal) -> Sequence[Folder]:
        """Return all visible folders by path."""
        return await self._read(principal, None)

    async def get(self, principal: DocumentPrincipal, node_id: UUID) -> Folder:
        """Return a folder."""
        folders = await self._read(principal, node_id)
        if not folders:
            raise unknown_folder()
        return folders[0]

    async def change(
        self,
        principal: DocumentPrincipal,
        node_id: UUID,
        *,
        name: str | None = None,
        move_to: UUID | None = None,
        moves: bool = False,
    ) -> Folder:
        """Rename a folder, or move it to another one (`moves`; None is the root)."""
        values = {
            "org_id": principal.org_id,
            "node_id": node_id,
            "moves": moves,
            "parent_id": move_to,
            "name": None if name is None else checked_name(name),
        }
        changes = {} if name is None else {"name": name}
        changes |= {"parent_id": str(move_to or "root")} if moves else {}
        async with self._session(principal) as conn:
            access = await self._lock(conn, principal)
            await check_folder_writable(conn, principal, node_id, access)
            if moves:
                await self._check_move(conn, principal, node_id, move_to, access)
            await self._check_name(conn, values, access)
            await conn.execute(statement("nodes/update"), values)
            await self._record(conn, principal, "folder.changed", node_id, **changes)
        return await self.get(principal, node_id)

    async def remove(self, principal: DocumentPrincipal, node_id: UUID, *, reason: str | None = None) -> None:
        """Remove an empty folder. One with hidden content is not empty, and the error does not tell more."""
        async with self._session(principal) as conn:
            access = await self._lock(conn, principal)
            await check_folder_writable(conn, principal, node_id, access)
            try:
                await conn.execute(
                    statement("nodes/delete"), {"org_id": principal.org_id, "node_id": node_id}
                )
            except ForeignKeyViolation:
                raise FolderNotEmpty(
                    "the folder is not empty", field="node_id", fix="move or delete its content first"
                ) from None
            await self._record(conn, principal, "folder.deleted", node_id, reason=reason)

    async def grants(self, principal: DocumentPrincipal, node_id: UUID) -> Sequence[Grant]:
        """Return the grants of a folder; without any, it has the access of its parent folder."""
        await self.get(principal, node_id)
        async with self._session(principal) as conn:
            rows = await fetch_all(
                conn, "nodes/list_grants", {"org_id": principal.org_id, "node_id": node_id}
            )
        return [Grant(principal=name, level=level) for name, level in rows]

    async def set_grants(
        self,
        principal: DocumentPrincipal,
        node_id: UUID,
        grants: Sequence[Grant],
        *,
        reason: str | None = None,
    ) -> None:
        """Replace the grants of a folder; an empty list gives it the access of its parent folder."""
        _check_grants(grants)
        await self.get(principal, node_id)
        values = {
            "org_id": principal.org_id,
            "node_id": node_id,
            "granted_by": principal.name,
            "principals": [grant.principal for grant in grants],
            "levels": [grant.level for grant in grants],
        }
        levels = {grant.principal: grant.level for grant in grants}
        async with self._session(principal) as conn:
            await self._lock(conn, principal)
            await self._check_manages(conn, principal, node_id)
            await conn.execute(statement("nodes/set_grants"), values)
            await self._record(conn, principal, "folder.granted", node_id, reason=reason, grants=levels)

    async def _read(self, principal: DocumentPrincipal, node_id: UUID | None) -> Sequence[Folder]:
        async with self._session(principal) as conn:
            hidden = await hidden_folders(conn, principal)
            values = {"org_id": principal.org_id, "node_id": node_id, "hidden_folders": hidden}
            return [Folder.model_validate(row[0]) for row in await fetch_all(conn, "nodes/list", values)]

    async def _lock(self, conn: Connection, principal: DocumentPrincipal) -> FolderAccess:
        """Serialize changes of the folder tree, and return the access of the principal."""
        await conn.execute(statement("nodes/lock_tree"), {"org_id": principal.org_id})
        return await folder_access(conn, principal)

    async def _check_name(self, conn: Connection, values: Mapping[str, Any], access: FolderAccess) -> None:
        """Refuse the name of a visible sibling; a hidden one must not become known by a refusal."""
        row = await fetch_one(conn, "nodes/is_name_taken", {**values, "hidden_folders": access.hidden})
        if row is None or row[0]:
            raise NameTaken("a folder of that name exists", field="name", fix="choose another name")

    async def _check_move(
        self,
        conn: Connection,
        principal: DocumentPrincipal,
        node_id: UUID,
        parent_id: UUID | None,
        access: FolderAccess,
    ) -> None:
        """Refuse cycles and excessive depth; a move that changes who has access needs `manage`."""
        if parent_id is not None:
            await check_folder_writable(conn, principal, parent_id, access, "parent_id")
            if node_id in await self._ancestors(conn, principal, parent_id):
                raise ContractError(
                    "a folder cannot be moved into itself", field="parent_id", fix="choose another folder"
                )
        values = {"org_id": principal.org_id, "node_id": node_id, "parent_id": parent_id}
        row = await fetch_one(conn, "nodes/read_before_move", values)
        height, guard, new_guard = row or (1, None, None)
        await self._check_limits(conn, principal, parent_id, height)
        if guard not in (node_id, new_guard):
            for folder_id in {guard or node_id, new_guard or node_id}:
                await self._check_manages(conn, principal, folder_id)

    async def _check_limits(
        self, conn: Connection, principal: DocumentPrincipal, parent_id: UUID | None, height: int
    ) -> None:
        depth = 0 if parent_id is None else len(await self._ancestors(conn, principal, parent_id))
        if depth + height > _MAX_DEPTH:
            raise ContractError(
                f"more than {_MAX_DEPTH} levels of folders", field="parent_id", fix="choose a folder above"
            )
        row = await fetch_one(conn, "nodes/count", {"org_id": principal.org_id})
        if row is not None and row[0] >= _MAX_FOLDERS:
            raise LimitExceeded(
                f"the org has {_MAX_FOLDERS} folders",
                field="folders",
                fix="remove folders that are not needed",
            )

    async def _check_manages(self, conn: Connection, principal: DocumentPrincipal, node_id: UUID) -> None:
        values = {"org_id": principal.org_id, "node_id": node_id, "principal": principal.name}
        row = await fetch_one(conn, "nodes/may_grant", values)
        if row is None or not row[0]:
            raise Forbidden("you do not manage this folder", field="node_id", fix="ask an admin of the org")

    async def _ancestors(
        self, conn: Connection, principal: DocumentPrincipal, node_id: UUID
    ) -> Sequence[UUID]:
        """Return a folder and the folders above it."""
        values = {"org_id": principal.org_id, "node_id": node_id}
        return [row[0] for row in await fetch_all(conn, "nodes/list_ancestors", values)]


def _check_grants(grants: Sequence[Grant]) -> None:
    if len(grants) > _MAX_GRANTS:
        raise ContractError(f"{len(grants)} grants", field="grants", fix=f"pass at most {_MAX_GRANTS} grants")
    if len({grant.principal for grant in grants}) < len(grants):
        raise ContractError("a principal is named twice", field="grants", fix="name each principal once")
    for index, grant in enumerate(grants):
        kind, _, name = grant.principal.partition(":")
        if kind not in ("user", "api_key") or not name:
            raise ContractError(
                f"{grant.principal!r} is not a principal",
                field=f"grants.{index}.principal",
                fix="write user:<id> or api_key:<id>",
            )
