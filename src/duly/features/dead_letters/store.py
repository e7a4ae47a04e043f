"""SQL of dead letters: list, group, lock and resolve them, and replay ended jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, rows
from duly.db.statements import statement
from duly.features.dead_letters.models import (
    MAX_LETTERS_COUNTED,
    DeadLetter,
    DeadLetterDetail,
    DeadLetterGroup,
    DeadLetterGroupDetail,
    FailureGroup,
    ReplayedJob,
    ReplayResult,
    ReplaySpec,
    Resolution,
    ResolutionRequest,
)
from duly.features.pagination import capped_count, time_cursor

_MAX_GROUPS_SCANNED, _MAX_LETTERS_FOR_ORGS = 1_000, 200


class DeadLetterFilter(NamedTuple):
    """A filter of dead letters by kind of failure and job type; None matches all."""

    fingerprint: str | None = None
    job_type: str | None = None


class DeadLetterCursor(NamedTuple):
    """The position of a letter in the order of a list."""

    dead_at: datetime
    job_id: UUID

    @classmethod
    def parse(cls, dead_at: str, job_id: str) -> Self:
        """Read the parts of an encoded cursor."""
        return cls(time_cursor(dead_at), UUID(job_id))


@dataclass(frozen=True, slots=True)
class LockedLetter:
    """A letter that no other transaction can resolve before this one ends."""

    job_id: UUID
    job_type: str
    dead_at: datetime
    fingerprint: str
    resolution: str | None
    resolved_by: str | None
    successor_job_id: UUID | None
    correlation_id: str | None

    @property
    def cursor(self) -> DeadLetterCursor:
        """The position of the letter in a list."""
        return DeadLetterCursor(self.dead_at, self.job_id)


async def list_letters(
    conn: Connection,
    org_id: UUID,
    letter_filter: DeadLetterFilter,
    *,
    before: DeadLetterCursor,
    limit: int,
    resolved: bool,
) -> list[DeadLetter]:
    """Return the next letters, newest first."""
    of_open_group = letter_filter.fingerprint and not resolved
    found = await rows(
        conn,
        "dead_letters/list_group" if of_open_group else "dead_letters/list",
        {
            "org_id": org_id,
            **letter_filter._asdict(),
            "before_at": before.dead_at,
            "before_job": before.job_id,
            "limit": limit,
            "resolved": resolved,
        },
    )
    return [DeadLetter.model_validate(row) for row in found]


async def list_groups(conn: Connection, org_id: UUID, *, limit: int) -> list[DeadLetterGroup]:
    """Return the groups of open letters of an org, latest first."""
    values = {"org_id": org_id, "max_groups": limit, "limit": limit, "max_count": MAX_LETTERS_COUNTED - 1}
    found = await rows(conn, "dead_letters/group_one_org", values)
    return [DeadLetterGroup.model_validate(row) for row in found]


async def list_groups_by_org(conn: Connection, *, limit: int) -> list[DeadLetterGroup]:
    """Return the groups of open letters of each org, latest first; on an engine session."""
    values = {"limit": limit, "max_count": MAX_LETTERS_COUNTED}
    found = await rows(conn, "dead_letters/group_by_org", values)
    return [DeadLetterGroup.model_validate(row) for row in found]


async def list_failure_groups(
    conn: Connection, org_id: UUID | None, *, limit: int, max_count: int
) -> list[FailureGroup]:
    """Return the latest groups: of an org on its session, or over all orgs on an engine session."""
    values = {
        "org_id": org_id,
        "max_groups": _MAX_GROUPS_SCANNED,
        "max_letters_for_orgs": _MAX_LETTERS_FOR_ORGS,
        "limit": limit,
        "max_count": max_count,
    }
    name = "dead_letters/group_all_orgs" if org_id is None else "dead_letters/group_one_org"
    return [
        FailureGroup.model_validate({**row, "letters": capped_count(row["letters"], max_count)})
        for row in await rows(conn, name, values)
    ]


async def read_group(conn: Connection, org_id: UUID, fingerprint: str) -> DeadLetterGroupDetail | None:
    """Return one kind of failure; None if there is no letter of it."""
    bounds = {
        "max_count": MAX_LETTERS_COUNTED,
        "max_recent": 1_000,
        "max_followed": 200,
        "max_successors": 10,
    }
    # One kind may be most of the table: the planner would rather read all of it.
    await conn.execute(f"{PREFER_INDEX_ORDER}; set local enable_seqscan = off")
    row = await first(
        conn, "dead_letters/read_group", {"org_id": org_id, "fingerprint": fingerprint, **bounds}
    )
    return DeadLetterGroupDetail.model_validate(row) if row else None


async def read_letter(conn: Connection, org_id: UUID, job_id: UUID) -> DeadLetterDetail | None:
    """Return one letter; None if the org has none of that job."""
    row = await first(conn, "dead_letters/read", {"org_id": org_id, "job_id": job_id})
    return DeadLetterDetail.model_validate(row) if row else None


async def lock_letters(conn: Connection, org_id: UUID, job_ids: Sequence[UUID]) -> list[LockedLetter]:
    """Lock the letters of these jobs, open or resolved."""
    found = await rows(conn, "dead_letters/lock", {"org_id": org_id, "job_ids": list(job_ids)})
    return [LockedLetter(**row) for row in found]


async def lock_open_letters(
    conn: Connection, org_id: UUID, letter_filter: DeadLetterFilter, *, after: DeadLetterCursor, limit: int
) -> list[LockedLetter]:
    """Lock the next open letters, oldest first; skip those that others hold."""
    values = {"after_at": after.dead_at, "after_job": after.job_id, "limit": limit}
    found = await rows(
        conn, "dead_letters/lock_open", {"org_id": org_id, **letter_filter._asdict(), **values}
    )
    return [LockedLetter(**row) for row in found]


async def resolve_letters(
    conn: Connection,
    request: ResolutionRequest,
    resolution: Resolution,
    successors: Mapping[UUID, UUID | None],
) -> None:
    """Write the resolution of locked letters, each with its new job if it has one."""
    await conn.execute(
        statement("dead_letters/resolve"),
        {
            "org_id": request.org_id,
            "resolution": resolution,
            "resolved_by": f"{request.actor.type}:{request.actor.id}",
            "reason": request.reason,
            "job_ids": list(successors),
            "successors": list(successors.values()),
        },
    )


async def replay_jobs(
    conn: Connection, request: ResolutionRequest, specs: Sequence[ReplaySpec]
) -> ReplayResult:
    """Enqueue new jobs for ended ones."""
    cursor = await conn.execute(
        statement("dead_letters/replay"),
        {
            "org_id": request.org_id,
            "jobs": f"[{','.join(spec.as_json() for spec in specs)}]",
            "actor_type": request.actor.type,
            "actor_id": request.actor.id,
            "request_id": request.request_id,
            "traceparent": request.traceparent,
            "reason": request.reason,
        },
    )
    found = await cursor.fetchall()
    return ReplayResult(
        done={
            row[0]: ReplayedJob(row[2], row[1] == "created", *row[3:]) for row in found if row[1] != "held"
        },
        held={row[0]: row[2] for row in found if row[1] == "held"},
    )
