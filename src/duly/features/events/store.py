"""All events of an org, in the order in which their transactions can be told to have happened.

A number that is given before the commit, as a sequence does, is overtaken: a reader that went past it misses
what commits later. So events are read by their transaction, and only those before which none is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from psycopg.rows import dict_row

from duly.core.job import JobEvent
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER
from duly.db.statements import statement


class Place(NamedTuple):
    """How far a reader came: everything up to this event is read, whether it was the reader's or not."""

    drops: int
    """The last drop of old events that the reader knows of."""
    xid: int
    job_id: UUID
    event_seq: int

    @classmethod
    def before(cls, xid: int, drops: int) -> Place:
        """Before all events of a transaction."""
        return cls(drops, xid, UUID(int=0), 0)


BEGINNING = Place.before(0, 2**63 - 1)
"""Before every event that is still kept: what was dropped already is no loss to a reader who begins."""


class FeedEvent(JobEvent):
    """An event of an org, with what identifies its job; `cursor` asks for what follows it."""

    org_id: UUID
    job_type: str
    project_id: UUID | None
    request_id: str
    correlation_id: str
    trace_id: str | None
    subject_id: str | None
    """What its job is about; none also if the job is gone."""
    cursor: str


class Look(NamedTuple):
    """Where the next events of an org lie, and how far the look came."""

    places: tuple[Place, ...]
    end: Place
    more: bool
    """Whether the look ended before the feed did."""
    lost: bool
    """Whether events after the place were dropped since the reader was there."""
    unknown: bool
    """Whether no transaction of this server has come as far as the place."""


async def look(conn: Connection, org_id: UUID, after: Place, *, limit: int, most: int) -> Look:
    """The next events of an org, `limit` at most, among the next `most` of all; on an engine session."""
    values = {
        "org_id": org_id,
        "xid": str(after.xid),
        "job_id": after.job_id,
        "event_seq": after.event_seq,
        "drops": after.drops,
        "limit": limit,
        "look": most,
    }
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(PREFER_INDEX_ORDER)
        row = await (await cursor.execute(statement("events/feed_look"), values)).fetchone()
    assert row is not None
    found = zip(row["xids"], row["job_ids"], row["seqs"], strict=True)
    places = tuple(Place(row["drops"], *key) for key in found)
    full, cut = len(places) == limit, row["looked"] == most
    if full:
        end = places[-1]
    elif cut:
        end = Place(row["drops"], row["last_xid"], row["last_job_id"], row["last_event_seq"])
    elif row["last_xid"] is not None:
        # Never beyond what was seen: a crash or a failover forgets transactions that left nothing behind, and
        # gives their numbers to others. What was seen is safely committed: no number up to it comes again.
        end = Place.before(row["last_xid"] + 1, row["drops"])
    else:
        end = after._replace(drops=row["drops"])
    return Look(places, end, full or cut, row["lost"], row["unknown"])


async def read(
    conn: Connection, org_id: UUID, places: Sequence[Place], cursors: Sequence[str]
) -> list[FeedEvent]:
    """The events at these places, with the cursor of each; on a session of the org."""
    values = {
        "org_id": org_id,
        "job_ids": [place.job_id for place in places],
        "seqs": [place.event_seq for place in places],
    }
    async with conn.cursor(row_factory=dict_row) as cursor:
        rows = await (await cursor.execute(statement("events/feed_read"), values)).fetchall()
    named = {(at.job_id, at.event_seq): text for at, text in zip(places, cursors, strict=True)}
    return [
        FeedEvent.model_validate({**row, "cursor": named[row["job_id"], row["event_seq"]]}) for row in rows
    ]


async def tip(conn: Connection) -> Place:
    """The end of the feed: after everything that is surely over; on an engine session."""
    row = await (await conn.execute(statement("events/feed_tip"))).fetchone()
    assert row is not None
    return Place.before(row[0], row[1])
