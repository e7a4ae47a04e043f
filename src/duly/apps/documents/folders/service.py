"""Folders of an org, and whom they are for."""

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
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.core.errors import ContractError, Forbidden, LimitExceeded
from duly.features.audit.service import Audit
from duly.jobs.application import App

_DEEPEST = 20
_MOST_GRANTS = 200
_MOST_FOLDERS = 10_000


class Folders:
    """What visitors do with folders."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._audit = Audit(app)

    async def create(self, who: DocumentPrincipal, name: str, parent_id: UUID | None = None) -> Folder:
        """A new folder in another, or in the root."""
        values = {"org_id": who.org_id, "parent_id": parent_id, "name": checked_name(name)}
        async with self._app.tenant_session(who.org_id) as conn:
            await self._lock(conn, who)
            access = await folder_access(conn, who)
            await check_folder_writable(conn, who, parent_id, access, "parent_id")
            await self._check_room(conn, who, parent_id, 1)
            await self._check_name(conn, {**values, "node_id": None, "moves": True}, access)
            made = await fetch_one(conn, "nodes/insert", {**values, "created_by": who.name})
            assert made is not None
            await self._note(conn, who, "folder.created", made[0], name=name)
        return await self.get(who, made[0])

    async def list(self, who: DocumentPrincipal) -> Sequence[Folder]:
        """All folders that are open to them, by their paths."""
        return await self._read(who, None)

    async def get(self, who: DocumentPrincipal, node_id: UUID) -> Folder:
        """A folder that is open to them."""
        found = await self._read(who, node_id)
        if not found:
            raise unknown_folder()
        return found[0]

    async def change(
        self,
        who: DocumentPrincipal,
        node_id: UUID,
        *,
        name: str | None = None,
        move_to: UUID | None = None,
        moves: bool = False,
    ) -> Folder:
        """Another name, or another place (`moves`; None is the root)."""
        values = {
            "org_id": who.org_id, "node_id": node_id, "moves": moves, "parent_id": move_to,
            "name": None if name is None else checked_name(name),
        }  # fmt: skip
        async with self._app.tenant_session(who.org_id) as conn:
            await self._lock(conn, who)
            access = await folder_access(conn, who)
            await check_folder_writable(conn, who, node_id, access)
            if moves:
                await self._check_move(conn, who, node_id, move_to, access)
            await self._check_name(conn, values, access)
            await conn.execute(statement("nodes/change"), values)
            told = {"name": name} if name is not None else {}
            told |= {"parent_id": str(move_to) if move_to else "root"} if moves else {}
            await self._note(conn, who, "folder.changed", node_id, **told)
        return await self.get(who, node_id)

    async def remove(self, who: DocumentPrincipal, node_id: UUID, *, reason: str | None = None) -> None:
        """Remove an empty folder. One that holds what is closed to them is not empty, and says no more."""
        async with self._app.tenant_session(who.org_id) as conn:
            await self._lock(conn, who)
            await check_folder_writable(conn, who, node_id)
            try:
                await conn.execute(statement("nodes/delete"), {"org_id": who.org_id, "node_id": node_id})
            except ForeignKeyViolation:
                raise FolderNotEmpty(
                    "there is still something in it", field="node_id", fix="move or delete that first"
                ) from None
            await self._note(conn, who, "folder.deleted", node_id, reason=reason)

    async def grants(self, who: DocumentPrincipal, node_id: UUID) -> Sequence[Grant]:
        """Whom a folder is for; nobody named means that it follows the folder that it lies in."""
        await self.get(who, node_id)
        async with self._app.tenant_session(who.org_id) as conn:
            found = await fetch_all(conn, "nodes/grants", {"org_id": who.org_id, "node_id": node_id})
        return [Grant(principal=row[0], level=row[1]) for row in found]

    async def set_grants(
        self, who: DocumentPrincipal, node_id: UUID, grants: Sequence[Grant], *, reason: str | None = None
    ) -> None:
        """Say whom a folder is for, all of them at once; an empty list lets it follow the one above."""
        _check(grants)
        await self.get(who, node_id)
        values = {
            "org_id": who.org_id, "node_id": node_id, "granted_by": who.name,
            "principals": [one.principal for one in grants], "levels": [one.level for one in grants],
        }  # fmt: skip
        async with self._app.tenant_session(who.org_id) as conn:
            await self._lock(conn, who)
            await self._check_manages(conn, who, node_id)
            await conn.execute(statement("nodes/set_grants"), values)
            told = {grant.principal: grant.level for grant in grants}
            await self._note(conn, who, "folder.granted", node_id, reason=reason, grants=told)

    async def _read(self, who: DocumentPrincipal, node_id: UUID | None) -> Sequence[Folder]:
        async with self._app.tenant_session(who.org_id) as conn:
            values = {
                "org_id": who.org_id,
                "node_id": node_id,
                "hidden_folders": await hidden_folders(conn, who),
            }
            return [Folder.model_validate(row[0]) for row in await fetch_all(conn, "nodes/list", values)]

    async def _lock(self, conn: Connection, who: DocumentPrincipal) -> None:
        await conn.execute(statement("nodes/lock_all"), {"org_id": who.org_id})

    async def _check_name(self, conn: Connection, values: Mapping[str, Any], access: FolderAccess) -> None:
        """Refuse a name that another has which they can see; one that they cannot must not tell of itself."""
        taken = await fetch_one(conn, "nodes/name_taken", {**values, "hidden_folders": access.hidden})
        if taken is None or taken[0]:
            raise NameTaken("there is one of that name", field="name", fix="choose another name")

    async def _check_move(
        self, conn: Connection, who: DocumentPrincipal, node_id: UUID, to: UUID | None, access: FolderAccess
    ) -> None:
        """Refuse circles and depths; whom it is for is changed only by who may say so."""
        if to is not None:
            await check_folder_writable(conn, who, to, access, "parent_id")
            if node_id in await self._above(conn, who, to):
                raise ContractError("a folder cannot lie in itself", field="parent_id", fix="choose another")
        found = await fetch_one(
            conn, "nodes/before_move", {"org_id": who.org_id, "node_id": node_id, "parent_id": to}
        )
        height, before, after = found or (1, None, None)
        await self._check_room(conn, who, to, height)
        if before not in (node_id, after):
            for place in {before or node_id, after or node_id}:
                await self._check_manages(conn, who, place)

    async def _check_room(
        self, conn: Connection, who: DocumentPrincipal, parent_id: UUID | None, height: int
    ) -> None:
        above = 0 if parent_id is None else len(await self._above(conn, who, parent_id))
        if above + height > _DEEPEST:
            raise ContractError("too deep", field="parent_id", fix=f"keep to {_DEEPEST} levels")
        there = await fetch_one(conn, "nodes/count", {"org_id": who.org_id})
        if there is not None and there[0] >= _MOST_FOLDERS:
            raise LimitExceeded(f"{_MOST_FOLDERS} folders", field="folders", fix="remove some")

    async def _check_manages(self, conn: Connection, who: DocumentPrincipal, node_id: UUID) -> None:
        asked = {"org_id": who.org_id, "node_id": node_id, "principal": who.name}
        may = await fetch_one(conn, "nodes/may_grant", asked)
        if may is None or not may[0]:
            raise Forbidden("you do not manage this folder", field="node_id", fix="ask an admin of the org")

    async def _above(self, conn: Connection, who: DocumentPrincipal, node_id: UUID) -> Sequence[UUID]:
        found = await fetch_all(conn, "nodes/above", {"org_id": who.org_id, "node_id": node_id})
        return [row[0] for row in found]

    async def _note(
        self,
        conn: Any,
        who: DocumentPrincipal,
        action: str,
        node_id: UUID,
        reason: str | None = None,
        **detail: Any,
    ) -> None:
        await self._audit.record(
            conn, who.org_id, action, str(node_id), actor=who.actor, reason=reason, **detail
        )


def _check(grants: Sequence[Grant]) -> None:
    if len(grants) > _MOST_GRANTS:
        raise ContractError("too many", field="grants", fix=f"name {_MOST_GRANTS} or fewer")
    if len({grant.principal for grant in grants}) < len(grants):
        raise ContractError("somebody is named twice", field="grants", fix="name everybody once")
    for place, grant in enumerate(grants):
        kind, colon, who = grant.principal.partition(":")
        if kind not in ("user", "api_key") or not colon or not who:
            fix = "write user:<id> or api_key:<id>"
            raise ContractError(f"{grant.principal!r} is nobody", field=f"grants.{place}.principal", fix=fix)
