"""Check the arguments that many services share: ids, texts, counts, and lookups that found no row."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from duly.core.errors import ContractError, MissingField, NotFound, UnknownJob, UnknownOrg
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.jobs.request_context import as_uuid, checked_text

T = TypeVar("T")
_MAX_COUNT = 1000
_MAX_OVERLAP = timedelta(days=90)


def org_uuid(org_id: UUID | str) -> UUID:
    """Return the id of an org, or parse it from its text."""
    return required_uuid("org_id", org_id)


def required_uuid(field: str, value: UUID | str) -> UUID:
    """Return an id, or parse it from its text; raise if it is missing."""
    parsed = as_uuid(field, value)
    if parsed is None:
        raise MissingField("missing", field=field, fix=f"pass {field}")
    return parsed


async def check_org_exists(conn: Connection, org_id: UUID) -> None:
    """Raise if there is no such org, active or suspended. Services call it when they found no rows."""
    cursor = await conn.execute(statement("orgs/find"), {"org_id": org_id})
    if await cursor.fetchone() is None:
        raise unknown_org(org_id)


async def check_org_active(conn: Connection, org_id: UUID) -> datetime:
    """Return the database's time; raise if the org is unknown or suspended."""
    cursor = await conn.execute(statement("orgs/check_active"), {"org_id": org_id})
    row = await cursor.fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


def unknown_job(job_id: UUID) -> UnknownJob:
    """Return the one error of a job that is unknown, of another org, or invisible to the requester."""
    return UnknownJob(f"no job {job_id} in this org", field="job_id", fix="check the id and the org")


def unknown_org(org_id: UUID) -> UnknownOrg:
    """Return the error for an org that does not exist."""
    return UnknownOrg(f"no org {org_id}", field="org_id", fix="check the id, or create the org first")


def required_text(field: str, value: str) -> str:
    """Return a short text that PostgreSQL can store; raise if it is missing."""
    text = checked_text(field, value)
    if text is None:
        raise MissingField("missing", field=field, fix=f"pass {field}")
    return text


def require(row: T | None, unknown: type[NotFound], resource: str, *, field: str) -> T:
    """Return the row of a lookup in an org, or raise: `no member u-17 in this org`."""
    if row is None:
        raise unknown(f"no {resource} in this org", field=field, fix=f"check {field} and the org")
    return row


def checked_overlap(overlap: timedelta) -> timedelta:
    """Return how long a rotated secret stays valid beside its successor; raise if it is out of range."""
    if type(overlap) is not timedelta or not timedelta(0) <= overlap <= _MAX_OVERLAP:
        raise ContractError(f"{overlap} is out of range", field="overlap", fix="use 0 to 90 days")
    return overlap


def checked_count(n: int) -> int:
    """Return the number of requested items; raise if it is out of range."""
    if type(n) is not int or not 0 < n <= _MAX_COUNT:
        raise ContractError(f"{n!r} is out of range", field="n", fix=f"use 1 to {_MAX_COUNT}")
    return n
