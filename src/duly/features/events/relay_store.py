"""How far the events have been relayed to those who want to be told, and which come next.

The same order as in the feed, and for the same reasons: by transaction, and only those before which none
is open.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from duly.core.job import SYSTEM_ORG
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, rows
from duly.db.statements import statement


class Place(NamedTuple):
    """An event, by its place in the order of transactions."""

    xid: int
    job_id: UUID
    event_seq: int


class Held(NamedTuple):
    """Where the relay goes on, held by this transaction."""

    place: Place
    ahead: bool
    """Whether no transaction of this server has come as far."""
    wanted: bool
    """Whether anybody wants to be told of anything."""


class Found(NamedTuple):
    """An event that is relayed: of an org with an endpoint or a subscription, and not of a job of Duly's own.

    In one round they come by job, and those of a job in their order.
    """

    org_id: UUID
    job_id: UUID
    event_seq: int
    event_type: str
    status: str
    attempt: int
    outcome: str
    """`pending`, unless this event has ended the job."""
    error_code: str | None
    job_type: str
    commit_xid: int
    occurred_at: datetime


class Look(NamedTuple):
    """What comes next, and how far the look came."""

    found: list[Found]
    end: Place
    looked: int


async def hold_mark(conn: Connection) -> Held | None:
    """Take the relay over for this transaction; None if there is nothing to do, or somebody else has it."""
    row = await first(conn, "relay/hold_mark", {})
    return Held(_place(row), row["ahead"], row["wanted"]) if row else None


async def look(conn: Connection, after: Place, *, most: int) -> Look:
    """The events among the next so many of all orgs that somebody may want to be told of."""
    await conn.execute(PREFER_INDEX_ORDER)
    mark = {"xid": str(after.xid), "job_id": after.job_id, "event_seq": after.event_seq}
    row = await first(conn, "relay/look", {**mark, "look": most, "own": SYSTEM_ORG})
    assert row is not None
    end = _place(row) if row["looked"] else after
    return Look(await _read(conn, after, row) if row["job_ids"] else [], end, row["looked"])


async def _read(conn: Connection, after: Place, jobs: dict[str, Any]) -> list[Found]:
    mark = {"xid": str(after.xid), "mark_job_id": after.job_id, "mark_seq": after.event_seq}
    chosen = {name: jobs[name] for name in ("org_ids", "job_ids", "first_seqs", "last_seqs")}
    return [Found(**row) for row in await rows(conn, "relay/read", {**mark, **chosen})]


async def move_mark(conn: Connection, place: Place) -> None:
    """Everything up to here was relayed; on the session that relayed it."""
    values = {"xid": str(place.xid), "job_id": place.job_id, "event_seq": place.event_seq}
    await conn.execute(statement("relay/move_mark"), values)


async def follow(conn: Connection) -> None:
    """Pass by everything that is over, if nobody wants to be told of anything."""
    await conn.execute(statement("relay/follow"))


def _place(row: dict[str, Any]) -> Place:
    return Place(row["xid"], row["job_id"], row["event_seq"])
