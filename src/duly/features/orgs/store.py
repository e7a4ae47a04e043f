"""Statements on orgs, their projects, and their shares of the workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import read_all, read_first, rows
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


async def list_orgs(conn: Connection, after: UUID, *, limit: int) -> list[Org]:
    """Return the orgs after an id, by id; on an engine session."""
    return await read_all(conn, Org, "orgs/list", {"after": after, "limit": limit})


async def read_org(conn: Connection, org_id: UUID) -> Org | None:
    """Read an org, active or not."""
    return await read_first(conn, Org, "orgs/read", {"org_id": org_id})


async def read_names(conn: Connection, org_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of these orgs; on an engine session."""
    found = await rows(conn, "orgs/read_names", {"org_ids": list(org_ids)})
    return {row["org_id"]: row["name"] for row in found}


async def lock_org(conn: Connection, org_id: UUID) -> Org | None:
    """Lock an org for a change of it, of its keys or of its members."""
    return await read_first(conn, Org, "orgs/lock", {"org_id": org_id})


async def add_org(conn: Connection, org_id: UUID, name: str) -> Org | None:
    """Create an org; None if one of that id exists."""
    return await read_first(conn, Org, "orgs/add", {"org_id": org_id, "name": name})


async def change_org(conn: Connection, org: Org) -> Org:
    """Write the name and the status of a locked org."""
    [changed] = await read_all(conn, Org, "orgs/change", org.model_dump())
    return changed


async def add_project(conn: Connection, org_id: UUID, project_id: UUID, name: str) -> Project | None:
    """Create a project; None if the org has one of that id."""
    values = {"org_id": org_id, "project_id": project_id, "name": name}
    return await read_first(conn, Project, "projects/add", values)


async def read_project(conn: Connection, org_id: UUID, project_id: UUID) -> Project | None:
    """Read a project of an org."""
    return await read_first(conn, Project, "projects/read", {"org_id": org_id, "project_id": project_id})


async def list_projects(conn: Connection, org_id: UUID, after: UUID, *, limit: int) -> list[Project]:
    """Return the projects of an org after an id, by id."""
    return await read_all(conn, Project, "projects/list", {"org_id": org_id, "after": after, "limit": limit})


async def read_activity(conn: Connection, *, max_steps: int, max_claimed: int) -> Activity:
    """Return the orgs with queued or running jobs; scan so many steps and claimed jobs at most."""
    values = {"max_steps": max_steps, "max_claimed": max_claimed}
    found = await rows(conn, "fair_shares/list_active", values)
    totals: dict[str, Any] = found[0] if found else {"slots": 0, "more": False}
    running = {row["org_id"]: row["running"] for row in found}
    waiting = frozenset(row["org_id"] for row in found if row["waits"])
    return Activity(running, waiting, totals["slots"], totals["more"])


async def read_backlogs(conn: Connection, org_ids: Sequence[UUID], *, max_count: int) -> list[dict[str, Any]]:
    """Return the queued jobs and the limits of these orgs, by id; unknown orgs are left out."""
    return await rows(conn, "fair_shares/read_backlogs", {"org_ids": list(org_ids), "max_count": max_count})
