"""Orgs and their projects: create, rename, suspend, resume. Each change is audited in the org's own trail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypeVar
from uuid import UUID, uuid4

from duly.core.errors import Conflict, ContractError
from duly.core.job import SYSTEM_ORG, Actor
from duly.db.pool import Connection
from duly.features.arguments import org_uuid, required_text, unknown_org
from duly.features.audit.entries import (
    ChangeRequest,
    audited_transaction,
    change_request,
    change_under_lock,
    record_entry,
)
from duly.features.orgs import store
from duly.features.orgs.models import Org, OrgPage, OrgStatus, Project, ProjectPage
from duly.features.pagination import decode_cursor, page_size, read_org_page, split_page
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid

__all__ = ["Org", "OrgPage", "OrgStatus", "Orgs", "Project", "ProjectPage"]

Named = TypeVar("Named", Org, Project)
_FIRST_ID = UUID(int=0)


class Orgs:
    """The orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(self, *, limit: int = 50, after: str | None = None) -> OrgPage:
        """Return the orgs by id, including suspended ones and the system's own."""
        size, start = page_size(limit), decode_cursor(after, UUID) or _FIRST_ID
        async with (await self._app.resources()).database.engine() as conn:
            orgs = await store.list_orgs(conn, start, limit=size + 1)
        return OrgPage(*split_page(orgs, size, lambda last: last.org_id))

    async def get(self, org_id: UUID | str) -> Org:
        """Return an org; an unknown one raises."""
        org_id = org_uuid(org_id)
        async with self._app.tenant_session(org_id) as conn:
            return _require_org(await store.read_org(conn, org_id), org_id)

    async def names(self, org_ids: Iterable[UUID]) -> dict[UUID, str]:
        """Return the names of these orgs; unknown ones are left out."""
        unique = set(org_ids)
        if not unique:
            return {}
        async with (await self._app.resources()).database.engine() as conn:
            return await store.read_names(conn, unique)

    async def create(self, org_id: UUID | str | None, name: str, *, actor: Actor, reason: str) -> Org:
        """Create an org, with a new id if none is passed. Idempotent with the same id."""
        org = _checked_tenant(as_uuid("org_id", org_id) or uuid4())
        name, request = required_text("name", name), change_request(actor, reason)

        async def change(conn: Connection) -> Org:
            created = await store.add_org(conn, org, name)
            if created is None:
                return _check_same_name(await lock_org(conn, org), name, "org_id")
            await record_entry(conn, request, org, "org.created", str(org), name=name)
            return created

        return await audited_transaction(self._app, change)

    async def rename(self, org_id: UUID | str, name: str, *, actor: Actor, reason: str) -> Org:
        """Rename an org."""
        values = {"name": required_text("name", name)}
        return await self._change(org_id, change_request(actor, reason), "renamed", values)

    async def suspend(self, org_id: UUID | str, *, actor: Actor, reason: str) -> Org:
        """Suspend an org until it is resumed.

        Its keys and members are refused, nothing can be enqueued or replayed for it, and its schedules wait.
        Its queued and running jobs continue: pause its limits to stop those as well.
        """
        values = {"status": OrgStatus.SUSPENDED}
        return await self._change(org_id, change_request(actor, reason), "suspended", values)

    async def resume(self, org_id: UUID | str, *, actor: Actor, reason: str) -> Org:
        """Resume a suspended org."""
        values = {"status": OrgStatus.ACTIVE}
        return await self._change(org_id, change_request(actor, reason), "resumed", values)

    async def create_project(
        self,
        org_id: UUID | str,
        project_id: UUID | str | None,
        name: str,
        *,
        actor: Actor,
        reason: str,
    ) -> Project:
        """Create a project of an org, with a new id if none is passed. Idempotent with the same id."""
        org, project = _checked_tenant(org_uuid(org_id)), as_uuid("project_id", project_id) or uuid4()
        name, request = required_text("name", name), change_request(actor, reason)

        async def change(conn: Connection) -> Project:
            await lock_org(conn, org)
            created = await store.add_project(conn, org, project, name)
            if created is None:
                existing = await store.read_project(conn, org, project)
                assert existing is not None  # projects are never deleted
                return _check_same_name(existing, name, "project_id")
            await record_entry(conn, request, org, "project.created", str(project), name=name)
            return created

        return await audited_transaction(self._app, change)

    async def list_projects(
        self, org_id: UUID | str, *, limit: int = 50, after: str | None = None
    ) -> ProjectPage:
        """Return the projects of an org by id; an unknown org raises."""
        org, start = org_uuid(org_id), decode_cursor(after, UUID) or _FIRST_ID
        page = await read_org_page(
            self._app,
            org,
            lambda conn, count: store.list_projects(conn, org, start, limit=count),
            lambda last: last.project_id,
            limit=limit,
        )
        return ProjectPage(*page)

    async def _change(
        self, org_id: UUID | str, request: ChangeRequest, action: str, values: Mapping[str, Any]
    ) -> Org:
        async def save(conn: Connection, org: Org, changed: Mapping[str, Any]) -> Org:
            detail = {"name": changed["name"], "before": org.name} if "name" in changed else {}
            await record_entry(conn, request, org.org_id, f"org.{action}", str(org.org_id), **detail)
            return await store.change_org(conn, org.model_copy(update=dict(changed)))

        return await change_under_lock(
            self._app,
            partial(lock_org, org_id=_checked_tenant(org_uuid(org_id))),
            lambda org: {name: value for name, value in values.items() if getattr(org, name) != value},
            save,
        )


async def lock_org(conn: Connection, org_id: UUID) -> Org:
    """Lock an org for a change of it, of its keys or of its members; an unknown one raises."""
    return _require_org(await store.lock_org(conn, org_id), org_id)


def _require_org(org: Org | None, org_id: UUID) -> Org:
    if org is None:
        raise unknown_org(org_id)
    return org


def _check_same_name(existing: Named, name: str, field: str) -> Named:
    if existing.name != name:
        raise Conflict(
            f"the id is taken by {existing.name!r}", field=field, fix="use that name, or choose another id"
        )
    return existing


def _checked_tenant(org_id: UUID) -> UUID:
    if org_id in (SYSTEM_ORG, _FIRST_ID):
        raise ContractError("this id is reserved", field="org_id", fix="use the id of a tenant's org")
    return org_id
