"""The feed of an org: all its events in commit order.

A number that is assigned before the commit, such as one of a sequence, is no safe cursor: a reader that has
passed it misses a transaction that commits later. The feed is ordered by transaction id instead, and ends
before the oldest transaction that is still open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, rows
from duly.features.events.models import FeedEvent


class FeedCursor(NamedTuple):
    """The position of a reader: it has read everything up to this event, of its own org and of others."""

    drops: int
    """The last drop of old events that the reader knows of."""
    xid: int
    job_id: UUID
    event_seq: int

    @classmethod
    def before(cls, xid: int, drops: int) -> FeedCursor:
        """Return the position before all events of a transaction."""
        return cls(drops, xid, UUID(int=0), 0)


BEGINNING = FeedCursor.before(0, 2**63 - 1)
"""Before every retained event: a new reader has not missed the events that were dropped earlier."""


class FeedScan(NamedTuple):
    """The positions of the next events of an org, and the end of the scan."""

    positions: tuple[FeedCursor, ...]
    end: FeedCursor
    more: bool
    """Whether the scan ended before the feed did."""
    lost: bool
    """Whether events after the cursor were dropped since the reader was there."""
    unknown: bool
    """Whether the cursor is ahead of all transactions of this server."""


async def scan(
    conn: Connection, org_id: UUID, after: FeedCursor, *, limit: int, max_scanned: int
) -> FeedScan:
    """Find up to `limit` next events of an org among `max_scanned` of all orgs; on an engine session."""
    values = {
        "org_id": org_id,
        "xid": str(after.xid),
        "job_id": after.job_id,
        "event_seq": after.event_seq,
        "drops": after.drops,
        "limit": limit,
        "max_scanned": max_scanned,
    }
    await conn.execute(PREFER_INDEX_ORDER)
    [row] = await rows(conn, "feed/scan", values)
    keys = zip(row["xids"], row["job_ids"], row["seqs"], strict=True)
    positions = tuple(FeedCursor(row["drops"], *key) for key in keys)
    is_full, is_cut = len(positions) == limit, row["scanned"] == max_scanned
    if is_full:
        end = positions[-1]
    elif is_cut:
        end = FeedCursor(row["drops"], row["last_xid"], row["last_job_id"], row["last_event_seq"])
    elif row["last_xid"] is not None:
        # Never beyond what was read: a crash or a failover forgets transactions that wrote nothing, and
        # assigns their ids again. An event that was read is committed: no id up to its own is assigned again.
        end = FeedCursor.before(row["last_xid"] + 1, row["drops"])
    else:
        end = after._replace(drops=row["drops"])
    return FeedScan(positions, end, is_full or is_cut, row["lost"], row["unknown"])


async def read(
    conn: Connection, org_id: UUID, positions: Sequence[FeedCursor], cursors: Sequence[str]
) -> list[FeedEvent]:
    """Return the events at these positions, each with its cursor; on a session of the org."""
    values = {
        "org_id": org_id,
        "job_ids": [position.job_id for position in positions],
        "seqs": [position.event_seq for position in positions],
    }
    by_key = {(at.job_id, at.event_seq): text for at, text in zip(positions, cursors, strict=True)}
    return [
        FeedEvent.model_validate({**row, "cursor": by_key[row["job_id"], row["event_seq"]]})
        for row in await rows(conn, "feed/read", values)
    ]


async def read_tip(conn: Connection) -> FeedCursor:
    """Return the current end of the feed; on an engine session."""
    row = await first(conn, "feed/read_tip", {})
    assert row is not None
    return FeedCursor.before(row["xid"], row["drops"])
