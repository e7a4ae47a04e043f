"""SQL of dead letters: list, group, lock and resolve them, and replay ended jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import UUID

from duly.core.job import Actor
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
    Resolution,
)
from duly.features.pagination import capped_count, time_cursor
from duly.jobs import store as job_store

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


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """An ended job to replay: after a delay, and with another payload unless that is None."""

    job_id: UUID
    delay: float | None = None
    payload: str | None = None
    payload_ref: str | None = None
    payload_hash: str | None = None

    def as_json(self) -> str:
        """Return the spec as `duly.replay` reads it."""
        fields = {
            "job_id": str(self.job_id),
            "delay": self.delay,
            "payload_ref": self.payload_ref,
            "payload_hash": self.payload_hash,
        }
        return f'{json.dumps(fields)[:-1]}, "payload": {self.payload or "null"}}}'


class ReplayedJob(NamedTuple):
    """The new job of an ended one."""

    job_id: UUID
    created: bool
    """Whether it is new, or existed already."""
    run_at: datetime | None = None
    job_type: str = ""
    queue: str = ""


class ReplayResult(NamedTuple):
    """The replays by the id of the ended job; jobs that no longer exist are in neither mapping."""

    done: dict[UUID, ReplayedJob]
    held: dict[UUID, UUID | None]
    """Jobs whose run identity is held: by an active run, or (None) by another job of the same batch."""


@dataclass(frozen=True, slots=True)
class ResolutionRequest:
    """The org, actor, reason and request of a resolution."""

    org_id: UUID
    actor: Actor
    reason: str
    request_id: str
    traceparent: str | None = None


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
    values = {
        "org_id": org_id,
        "max_groups": limit,
        "limit": limit,
        "max_count": MAX_LETTERS_COUNTED - 1,
    }
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
    conn: Connection,
    org_id: UUID,
    letter_filter: DeadLetterFilter,
    *,
    after: DeadLetterCursor,
    limit: int,
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
    successors: Mapping[LockedLetter, UUID | None],
) -> None:
    """Resolve locked letters, each with its new job if it has one, and audit each."""
    await conn.execute(
        statement("dead_letters/resolve"),
        {
            "org_id": request.org_id,
            "resolution": resolution,
            "resolved_by": f"{request.actor.type}:{request.actor.id}",
            "reason": request.reason,
            "job_ids": [letter.job_id for letter in successors],
            "successors": list(successors.values()),
        },
    )
    async with conn.pipeline():
        for letter, successor in successors.items():
            detail = {"successor_job_id": successor and str(successor), "fingerprint": letter.fingerprint}
            await record_job_entry(
                conn, request, f"dead_letter.{resolution}", letter.job_id, letter.correlation_id, detail
            )


async def record_job_entry(
    conn: Connection,
    request: ResolutionRequest,
    action: str,
    job_id: UUID,
    correlation_id: str | None,
    detail: Mapping[str, Any],
) -> None:
    """Write an audit entry whose target is a job."""
    await job_store.record_audit_entry(
        conn,
        org_id=request.org_id,
        actor=request.actor,
        action=action,
        target_type="job",
        target_id=str(job_id),
        reason=request.reason,
        request_id=request.request_id,
        correlation_id=correlation_id,
        detail=detail,
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
