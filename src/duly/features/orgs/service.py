"""Orgs and their projects: made, renamed, suspended. Each change is audited in the org's own trail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID, uuid4

from duly.core.errors import Conflict, ContractError
from duly.core.job import SYSTEM_ORG, Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, org_uuid, required_text, unknown_org
from duly.features.audit.entries import ChangeRequest, audited_transaction, change_request, record_entry
from duly.features.orgs import store as orgs
from duly.features.orgs.store import Org, OrgStatus, Project
from duly.features.pagination import decode_cursor, page_size, split_page
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid

__all__ = ["Org", "OrgPage", "OrgStatus", "Orgs", "Project", "ProjectPage"]

T = TypeVar("T", Org, Project)
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class OrgPage:
    """Some orgs; `after` asks for those that follow, and is None at the end."""

    orgs: tuple[Org, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """Some projects; `after` asks for those that follow, and is None at the end."""

    projects: tuple[Project, ...]
    after: str | None


class Orgs:
    """The orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(self, *, limit: int = 50, after: str | None = None) -> OrgPage:
        """Every org, also those that are suspended and the system's own, by their ids."""
        size, start = page_size(limit), decode_cursor(after, UUID) or _FIRST
        async with (await self._app.resources()).database.engine() as conn:
            found = await orgs.list_orgs(conn, start, limit=size + 1)
        return OrgPage(*split_page(found, size, lambda last: last.org_id))

    async def get(self, org_id: UUID | str) -> Org:
        """One org; an unknown one raises."""
        whose = org_uuid(org_id)
        async with self._app.tenant_session(whose) as conn:
            found = await orgs.read(conn, whose)
        if found is None:
            raise unknown_org(whose)
        return found

    async def names(self, org_ids: Iterable[UUID]) -> dict[UUID, str]:
        """What these orgs are called; those that are unknown are left out."""
        wanted = set(org_ids)
        if not wanted:
            return {}
        async with (await self._app.resources()).database.engine() as conn:
            return await orgs.names(conn, wanted)

    async def create(self, org_id: UUID | str | None, name: str, *, actor: Actor, reason: str) -> Org:
        """Make an org; without an id it gets one. Asked again, it changes nothing."""
        whose = _tenant(as_uuid("org_id", org_id) or uuid4())
        called, who = required_text("name", name), change_request(actor, reason)

        async def change(conn: Connection) -> Org:
            made = await orgs.add(conn, whose, called)
            if made is not None:
                await record_entry(conn, who, whose, "org.created", str(whose), name=called)
                return made
            return _same(await locked(conn, whose), called, "org_id")

        return await audited_transaction(self._app, change)

    async def rename(self, org_id: UUID | str, name: str, *, actor: Actor, reason: str) -> Org:
        """Give it another name."""
        called = required_text("name", name)
        return await self._change(
            org_id,
            change_request(actor, reason),
            "renamed",
            lambda now: {} if now.name == called else {"name": called},
        )

    async def suspend(self, org_id: UUID | str, *, actor: Actor, reason: str) -> Org:
        """Take nothing from it and let nobody in until it is resumed.

        Its keys and members are not believed, nothing can be enqueued or replayed for it, and its schedules
        wait. Jobs that it has waiting or running go on: pause its limits to stop those as well.
        """
        return await self._become(org_id, OrgStatus.SUSPENDED, "suspended", change_request(actor, reason))

    async def resume(self, org_id: UUID | str, *, actor: Actor, reason: str) -> Org:
        """Let it work again."""
        return await self._become(org_id, OrgStatus.ACTIVE, "resumed", change_request(actor, reason))

    async def create_project(
        self,
        org_id: UUID | str,
        project_id: UUID | str | None,
        name: str,
        *,
        actor: Actor,
        reason: str,
    ) -> Project:
        """Make a project of an org; without an id it gets one. Asked again, it changes nothing."""
        whose, which = _tenant(org_uuid(org_id)), as_uuid("project_id", project_id) or uuid4()
        called, who = required_text("name", name), change_request(actor, reason)

        async def change(conn: Connection) -> Project:
            await locked(conn, whose)
            made = await orgs.add_project(conn, whose, which, called)
            if made is not None:
                await record_entry(conn, who, whose, "project.created", str(which), name=called)
                return made
            there = await orgs.read_project(conn, whose, which)
            assert there is not None  # projects stay
            return _same(there, called, "project_id")

        return await audited_transaction(self._app, change)

    async def list_projects(
        self, org_id: UUID | str, *, limit: int = 50, after: str | None = None
    ) -> ProjectPage:
        """The projects of an org, by their ids; an unknown org raises."""
        whose, size, start = org_uuid(org_id), page_size(limit), decode_cursor(after, UUID) or _FIRST
        async with self._app.tenant_session(whose) as conn:
            found = await orgs.list_projects(conn, whose, start, limit=size + 1)
            if not found:
                await check_org_exists(conn, whose)
        return ProjectPage(*split_page(found, size, lambda last: last.project_id))

    async def _become(self, org_id: UUID | str, status: OrgStatus, action: str, who: ChangeRequest) -> Org:
        return await self._change(
            org_id, who, action, lambda now: {} if now.status is status else {"status": status}
        )

    async def _change(
        self, org_id: UUID | str, who: ChangeRequest, action: str, changed: Callable[[Org], dict[str, Any]]
    ) -> Org:
        """Change an org under its lock. A change of nothing leaves no trace."""
        whose = _tenant(org_uuid(org_id))

        async def change(conn: Connection) -> Org:
            now = await locked(conn, whose)
            values = changed(now)
            if not values:
                return now
            detail = {"name": values["name"], "before": now.name} if "name" in values else {}
            await record_entry(conn, who, whose, f"org.{action}", str(whose), **detail)
            return await orgs.change(conn, now.model_copy(update=values))

        return await audited_transaction(self._app, change)


async def locked(conn: Connection, org_id: UUID) -> Org:
    """An org, held for a change of it, of its keys or of its members; an unknown one raises."""
    found = await orgs.lock(conn, org_id)
    if found is None:
        raise unknown_org(org_id)
    return found


def _same(there: T, name: str, field: str) -> T:
    if there.name != name:
        raise Conflict(
            f"it is there, and called {there.name}", field=field, fix="use that name, or choose another id"
        )
    return there


def _tenant(org_id: UUID) -> UUID:
    """An org of somebody's."""
    if org_id in (SYSTEM_ORG, _FIRST):
        raise ContractError("this id is Duly's own", field="org_id", fix="choose the org of a tenant")
    return org_id
