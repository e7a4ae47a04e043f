"""Dead letters: what went wrong for good, what was done about it, and ended jobs done again."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import class_row, dict_row
from pydantic import BaseModel, ConfigDict

from duly.core.job import Actor
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, rows
from duly.db.statements import statement
from duly.jobs import store as job_store

MOST_COUNTED = 10_000
"""The letters of one kind are counted no further."""


class Resolution(StrEnum):
    """What was done about a dead letter."""

    REPLAYED = "replayed"
    DISCARDED = "discarded"
    FIXED = "fixed"


class DeadLetter(BaseModel):
    """A job that died, and what was done about it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    job_id: UUID
    job_type: str
    subject_id: str | None
    queue: str
    attempts: int
    fingerprint: str
    error_code: str
    error_class: str
    error_message: str
    dead_at: datetime
    kept: bool
    """Whether the record of the job is still there; without it nobody knows the subject."""
    resolution: Resolution | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolve_reason: str | None
    successor_job_id: UUID | None

    @property
    def place(self) -> Place:
        """Where it lies in the box."""
        return Place(self.dead_at, self.job_id)


class DeadLetterDetail(DeadLetter):
    """A dead letter with its whole error and its job's input; the latter is None when no longer kept."""

    error_context: dict[str, Any]
    project_id: UUID | None
    correlation_id: str | None
    payload: dict[str, Any] | None
    payload_ref: str | None
    replay_of: UUID | None
    created_at: datetime | None


class DeadLetterGroup(BaseModel):
    """The open letters of one kind in an org; the message is the latest one's."""

    model_config = ConfigDict(frozen=True)

    org_id: UUID
    fingerprint: str
    job_id: UUID
    """The latest one."""
    job_type: str
    error_code: str
    error_class: str
    error_message: str
    letters: int
    """Counted to 10,000."""
    first_dead_at: datetime
    last_dead_at: datetime
    org_name: str | None = None
    """Said where several orgs are told apart."""


class Successor(BaseModel):
    """A job that does the work of a dead one again, and how it fares."""

    model_config = ConfigDict(frozen=True)

    letter_job_id: UUID
    job_id: UUID
    resolution: Resolution
    resolved_at: datetime
    resolved_by: str
    status: str
    """Its status; `gone` if its record is no longer kept."""
    outcome: str
    subject_id: str | None


class DeadLetterKind(BaseModel):
    """One kind of failure: its open letters, and what became of those that were resolved lately."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    job_id: UUID
    """The latest letter: an open one if there is any."""
    job_type: str
    error_code: str
    error_class: str
    error_message: str
    error_context: dict[str, Any]
    letters: int
    """Those that are open, counted to 10,000."""
    first_dead_at: datetime | None
    """When the first of the open ones died."""
    last_dead_at: datetime
    resolved: dict[Resolution, int]
    """By what was done about them, of the last thousand letters of this kind."""
    fates: dict[str, int]
    """The new jobs by their status, and those that died again as `dead`; of the last two hundred."""
    successors: tuple[Successor, ...]
    """The latest new jobs."""


class Choice(NamedTuple):
    """Which letters: of one kind, of one job type, or all."""

    fingerprint: str | None = None
    job_type: str | None = None


class Place(NamedTuple):
    """Where a letter lies in the box: by time, and by its id among those of one moment."""

    dead_at: datetime
    job_id: UUID

    @property
    def cursor(self) -> str:
        """The place as a text that callers hand back unread."""
        return base64.urlsafe_b64encode(f"{self.dead_at.isoformat()} {self.job_id}".encode()).decode()

    @classmethod
    def parse(cls, cursor: str) -> Place:
        """The place behind such a text; ValueError for any other."""
        dead_at, job_id = base64.b64decode(cursor, altchars=b"-_", validate=True).decode().split(" ")
        return cls(datetime.fromisoformat(dead_at).astimezone(UTC), UUID(job_id))


@dataclass(frozen=True, slots=True)
class LockedLetter:
    """A letter that nobody else can resolve before our transaction ends."""

    job_id: UUID
    job_type: str
    dead_at: datetime
    fingerprint: str
    resolution: str | None
    resolved_by: str | None
    successor_job_id: UUID | None
    correlation_id: str | None

    @property
    def place(self) -> Place:
        """Where it lies in the box."""
        return Place(self.dead_at, self.job_id)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An ended job to be done again: when, and with which input if not its own."""

    job_id: UUID
    delay: float | None = None
    payload: str | None = None
    payload_ref: str | None = None
    payload_hash: str | None = None

    def as_json(self) -> str:
        """The wish as `duly.replay` reads it."""
        rest = {
            "job_id": str(self.job_id),
            "delay": self.delay,
            "payload_ref": self.payload_ref,
            "payload_hash": self.payload_hash,
        }
        return f'{json.dumps(rest)[:-1]}, "payload": {self.payload or "null"}}}'


class Replayed(NamedTuple):
    """The job that does the work of an ended one again."""

    job_id: UUID
    created: bool
    """Whether it is new, or was there already."""
    run_at: datetime | None = None
    job_type: str = ""
    queue: str = ""


class Replays(NamedTuple):
    """What became of some wishes, by the job that was to be done again; of those no longer kept, nothing."""

    done: dict[UUID, Replayed]
    held: dict[UUID, UUID | None]
    """Whose run identity is taken: by an active run, or by another wish of the same batch."""


@dataclass(frozen=True, slots=True)
class Order:
    """For which org something is changed, by whom, in which request and why."""

    org_id: UUID
    actor: Actor
    reason: str
    request_id: str
    traceparent: str | None = None


async def list_letters(
    conn: Connection, org_id: UUID, choice: Choice, *, before: Place, limit: int, resolved: bool
) -> list[DeadLetter]:
    """A page of letters, the newest first."""
    values = {"before_at": before.dead_at, "before_job": before.job_id, "limit": limit, "resolved": resolved}
    name = "dead_letters/list_kind" if choice.fingerprint and not resolved else "dead_letters/list"
    found = await rows(conn, name, {"org_id": org_id, **choice._asdict(), **values})
    return [DeadLetter.model_validate(row) for row in found]


async def group(conn: Connection, org_id: UUID, *, limit: int) -> list[DeadLetterGroup]:
    """The open letters by kind, the latest first."""
    values = {"org_id": org_id, "kinds": limit, "limit": limit, "most": MOST_COUNTED - 1}
    return [DeadLetterGroup.model_validate(row) for row in await rows(conn, "dead_letters/group", values)]


async def group_all(conn: Connection, *, limit: int) -> list[DeadLetterGroup]:
    """The open letters of all orgs by org and kind, the latest first."""
    values = {"limit": limit, "most": MOST_COUNTED}
    return [DeadLetterGroup.model_validate(row) for row in await rows(conn, "dead_letters/group_all", values)]


async def read_kind(conn: Connection, org_id: UUID, fingerprint: str) -> DeadLetterKind | None:
    """One kind of failure, if there is a letter of it."""
    bounds = {"most": MOST_COUNTED, "look": 1_000, "followed": 200, "shown": 10}
    # One kind may be much of what there is: the planner would rather read all of it.
    await conn.execute(f"{PREFER_INDEX_ORDER}; set local enable_seqscan = off")
    row = await first(
        conn, "dead_letters/read_kind", {"org_id": org_id, "fingerprint": fingerprint, **bounds}
    )
    return DeadLetterKind.model_validate(row) if row else None


async def read(conn: Connection, org_id: UUID, job_id: UUID) -> DeadLetterDetail | None:
    """One letter, or None if this org has none of that job."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("dead_letters/read"), {"org_id": org_id, "job_id": job_id})
        row = await cursor.fetchone()
    return DeadLetterDetail.model_validate(row) if row else None


async def lock(conn: Connection, org_id: UUID, job_id: UUID) -> LockedLetter | None:
    """One letter to be resolved, resolved or not yet."""
    async with conn.cursor(row_factory=class_row(LockedLetter)) as cursor:
        await cursor.execute(statement("dead_letters/lock"), {"org_id": org_id, "job_id": job_id})
        return await cursor.fetchone()


async def lock_these(conn: Connection, org_id: UUID, job_ids: Sequence[UUID]) -> list[LockedLetter]:
    """The letters of these jobs to be resolved together, resolved or not yet."""
    async with conn.cursor(row_factory=class_row(LockedLetter)) as cursor:
        await cursor.execute(
            statement("dead_letters/lock_these"), {"org_id": org_id, "job_ids": list(job_ids)}
        )
        return await cursor.fetchall()


async def lock_open(
    conn: Connection, org_id: UUID, choice: Choice, *, after: Place, limit: int
) -> list[LockedLetter]:
    """The next open letters, the oldest first, to be resolved together."""
    values = {"after_at": after.dead_at, "after_job": after.job_id, "limit": limit}
    async with conn.cursor(row_factory=class_row(LockedLetter)) as cursor:
        await cursor.execute(
            statement("dead_letters/lock_open"), {"org_id": org_id, **choice._asdict(), **values}
        )
        return await cursor.fetchall()


async def resolve(
    conn: Connection, order: Order, resolution: Resolution, successors: Mapping[LockedLetter, UUID | None]
) -> None:
    """Say of locked letters what was done about them, and note it in the audit trail."""
    await conn.execute(
        statement("dead_letters/resolve"),
        {
            "org_id": order.org_id,
            "resolution": resolution,
            "resolved_by": f"{order.actor.type}:{order.actor.id}",
            "reason": order.reason,
            "job_ids": [letter.job_id for letter in successors],
            "successors": list(successors.values()),
        },
    )
    async with conn.pipeline():
        for letter, successor in successors.items():
            detail = {"successor_job_id": successor and str(successor), "fingerprint": letter.fingerprint}
            await note(conn, order, f"dead_letter.{resolution}", letter.job_id, letter.correlation_id, detail)


async def note(
    conn: Connection,
    order: Order,
    action: str,
    job_id: UUID,
    correlation_id: str | None,
    detail: Mapping[str, Any],
) -> None:
    """One line of the audit trail about a job."""
    await job_store.record_audit_entry(
        conn,
        org_id=order.org_id,
        actor=order.actor,
        action=action,
        target_type="job",
        target_id=str(job_id),
        reason=order.reason,
        request_id=order.request_id,
        correlation_id=correlation_id,
        detail=detail,
    )


async def replay(conn: Connection, order: Order, wanted: Sequence[Wanted]) -> Replays:
    """Do the work of ended jobs again."""
    cursor = await conn.execute(
        statement("dead_letters/replay"),
        {
            "org_id": order.org_id,
            "jobs": f"[{','.join(wish.as_json() for wish in wanted)}]",
            "actor_type": order.actor.type,
            "actor_id": order.actor.id,
            "request_id": order.request_id,
            "traceparent": order.traceparent,
            "reason": order.reason,
        },
    )
    rows = await cursor.fetchall()
    return Replays(
        done={row[0]: Replayed(row[2], row[1] == "created", *row[3:]) for row in rows if row[1] != "held"},
        held={row[0]: row[2] for row in rows if row[1] == "held"},
    )
