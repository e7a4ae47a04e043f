"""Statements on orgs, their projects, and their shares of the workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import first, rows
from duly.features.orgs.models import Org, Project


class Activity(NamedTuple):
    """The orgs that have queued or running jobs."""

    running: dict[UUID, int]
    """Running jobs by org; 0 if its jobs are only queued."""
    waiting: frozenset[UUID]
    """Those of them that have queued jobs."""
    slots: int
    """How many jobs the living workers can run at a time."""
    more: bool
    """Whether more orgs may have queued jobs."""


class OrgBacklog(NamedTuple):
    """The queued jobs of an org, and its limits as a whole."""

    org_id: UUID
    name: str
    status: str
    waiting: int
    oldest_waiting_at: datetime | None
    max_running: int | None
    starts_per_second: float | None
    max_waiting: int | None
    paused_at: datetime | None
    pause_reason: str | None
    read_at: datetime


async def list_orgs(conn: Connection, after: UUID, *, limit: int) -> list[Org]:
    """Return the orgs after an id, by id; on an engine session."""
    found = await rows(conn, "orgs/list", {"after": after, "limit": limit})
    return [Org.model_validate(row) for row in found]


async def read_org(conn: Connection, org_id: UUID) -> Org | None:
    """Read an org, active or not."""
    return _org(await first(conn, "orgs/read", {"org_id": org_id}))


async def read_names(conn: Connection, org_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of these orgs; on an engine session."""
    found = await rows(conn, "orgs/read_names", {"org_ids": list(org_ids)})
    return {row["org_id"]: row["name"] for row in found}


async def lock_org(conn: Connection, org_id: UUID) -> Org | None:
    """Lock an org for a change of it, of its keys or of its members."""
    return _org(await first(conn, "orgs/lock", {"org_id": org_id}))


async def add_org(conn: Connection, org_id: UUID, name: str) -> Org | None:
    """Create an org; None if one of that id exists."""
    return _org(await first(conn, "orgs/add", {"org_id": org_id, "name": name}))


async def change_org(conn: Connection, org: Org) -> Org:
    """Write the name and the status of a locked org."""
    [row] = await rows(conn, "orgs/change", org.model_dump())
    return Org.model_validate(row)


async def add_project(conn: Connection, org_id: UUID, project_id: UUID, name: str) -> Project | None:
    """Create a project; None if the org has one of that id."""
    values = {"org_id": org_id, "project_id": project_id, "name": name}
    row = await first(conn, "projects/add", values)
    return Project.model_validate(row) if row else None


async def read_project(conn: Connection, org_id: UUID, project_id: UUID) -> Project | None:
    """Read a project of an org."""
    row = await first(conn, "projects/read", {"org_id": org_id, "project_id": project_id})
    return Project.model_validate(row) if row else None


async def list_projects(conn: Connection, org_id: UUID, after: UUID, *, limit: int) -> list[Project]:
    """Return the projects of an org after an id, by id."""
    found = await rows(conn, "projects/list", {"org_id": org_id, "after": after, "limit": limit})
    return [Project.model_validate(row) for row in found]


async def read_activity(conn: Connection, *, max_steps: int, max_claimed: int) -> Activity:
    """Return the orgs with queued or running jobs; scan so many steps and claimed jobs at most."""
    values = {"max_steps": max_steps, "max_claimed": max_claimed}
    found = await rows(conn, "fair_shares/list_active", values)
    totals: dict[str, Any] = found[0] if found else {"slots": 0, "more": False}
    running = {row["org_id"]: row["running"] for row in found}
    waiting = frozenset(row["org_id"] for row in found if row["waits"])
    return Activity(running, waiting, totals["slots"], totals["more"])


async def read_backlogs(conn: Connection, org_ids: Sequence[UUID], *, max_count: int) -> list[OrgBacklog]:
    """Return the backlogs of these orgs, by id; unknown orgs are left out."""
    values = {"org_ids": list(org_ids), "max_count": max_count}
    return [OrgBacklog(**row) for row in await rows(conn, "fair_shares/read_backlogs", values)]


def _org(row: dict[str, object] | None) -> Org | None:
    return Org.model_validate(row) if row else None
