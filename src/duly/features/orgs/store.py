"""Orgs and their projects, as those who look after the installation see them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.rows import first, rows


class OrgStatus(StrEnum):
    """Whether an org is worked for."""

    ACTIVE = "active"
    SUSPENDED = "suspended"


class Org(BaseModel):
    """One org."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    name: str
    status: OrgStatus
    created_at: datetime
    updated_at: datetime


class Project(BaseModel):
    """A project of an org."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    project_id: UUID
    name: str
    created_at: datetime


async def list_orgs(conn: Connection, after: UUID, *, limit: int) -> list[Org]:
    """The next orgs in the order of their ids; on an engine session."""
    return [
        Org.model_validate(row) for row in await rows(conn, "orgs/list", {"after": after, "limit": limit})
    ]


async def read(conn: Connection, org_id: UUID) -> Org | None:
    """One org, active or not."""
    return _org(await first(conn, "orgs/read", {"org_id": org_id}))


async def names(conn: Connection, org_ids: Iterable[UUID]) -> dict[UUID, str]:
    """What these orgs are called; on an engine session."""
    found = await rows(conn, "orgs/names", {"org_ids": list(org_ids)})
    return {row["org_id"]: row["name"] for row in found}


async def lock(conn: Connection, org_id: UUID) -> Org | None:
    """One org, held for a change of it, of its keys or of its members."""
    return _org(await first(conn, "orgs/lock", {"org_id": org_id}))


async def add(conn: Connection, org_id: UUID, name: str) -> Org | None:
    """A new org; None if there is one of that id."""
    return _org(await first(conn, "orgs/add", {"org_id": org_id, "name": name}))


async def change(conn: Connection, org: Org) -> Org:
    """Give a locked org another name or status."""
    [row] = await rows(conn, "orgs/change", org.model_dump())
    return Org.model_validate(row)


async def add_project(conn: Connection, org_id: UUID, project_id: UUID, name: str) -> Project | None:
    """A new project of an org; None if it has one of that id."""
    values = {"org_id": org_id, "project_id": project_id, "name": name}
    row = await first(conn, "projects/add", values)
    return Project.model_validate(row) if row else None


async def read_project(conn: Connection, org_id: UUID, project_id: UUID) -> Project | None:
    """One project of an org."""
    row = await first(conn, "projects/read", {"org_id": org_id, "project_id": project_id})
    return Project.model_validate(row) if row else None


async def list_projects(conn: Connection, org_id: UUID, after: UUID, *, limit: int) -> list[Project]:
    """The next projects of an org in the order of their ids."""
    found = await rows(conn, "projects/list", {"org_id": org_id, "after": after, "limit": limit})
    return [Project.model_validate(row) for row in found]


def _org(row: dict[str, object] | None) -> Org | None:
    return Org.model_validate(row) if row else None
