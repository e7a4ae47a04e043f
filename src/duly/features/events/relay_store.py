"""The mark of the relay: how far events are relayed, and the next batch of events.

The relay reads in the order of the feed, and for the same reasons: by transaction, and only before the oldest
transaction that is still open.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from duly.core.job import SYSTEM_ORG
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, rows
from duly.db.statements import statement
from duly.features.events.models import RelayedEvent


class RelayMark(NamedTuple):
    """The last relayed event by its position in commit order."""

    xid: int
    job_id: UUID
    event_seq: int


class LockedRelayMark(NamedTuple):
    """The mark of the relay, locked by this transaction."""

    mark: RelayMark
    ahead: bool
    """Whether the mark is ahead of all transactions of this server."""
    has_listeners: bool
    """Whether any org has an enabled endpoint or a subscription."""


class RelayBatch(NamedTuple):
    """The events to relay next, and how many events were scanned to find them."""

    events: list[RelayedEvent]
    end: RelayMark
    scanned: int


async def lock_mark(conn: Connection) -> LockedRelayMark | None:
    """Lock the mark for this transaction; None if there is nothing to relay, or another relay has it."""
    row = await first(conn, "relay/lock_mark", {})
    return LockedRelayMark(_mark(row), row["ahead"], row["has_listeners"]) if row else None


async def read_batch(conn: Connection, after: RelayMark, *, max_scanned: int) -> RelayBatch:
    """Scan the next events of all orgs; return those of orgs with a listener."""
    await conn.execute(PREFER_INDEX_ORDER)
    mark = _values(after)
    limits = {"max_scanned": max_scanned, "system_org": SYSTEM_ORG}
    [scan] = await rows(conn, "relay/scan", {**mark, **limits})
    events = []
    if scan["job_ids"]:
        jobs = {name: scan[name] for name in ("org_ids", "job_ids", "first_seqs", "last_seqs")}
        events = [RelayedEvent(**row) for row in await rows(conn, "relay/read_events", {**mark, **jobs})]
    return RelayBatch(events, _mark(scan) if scan["scanned"] else after, scan["scanned"])


async def move_mark(conn: Connection, mark: RelayMark) -> None:
    """Record that everything up to here is relayed; in the transaction that relayed it."""
    await conn.execute(statement("relay/move_mark"), _values(mark))


async def skip_to_tip(conn: Connection) -> None:
    """Move the mark past all committed events, if there is no listener."""
    await conn.execute(statement("relay/skip_to_tip"))


def _mark(row: dict[str, Any]) -> RelayMark:
    return RelayMark(row["xid"], row["job_id"], row["event_seq"])


def _values(mark: RelayMark) -> dict[str, Any]:
    return {**mark._asdict(), "xid": str(mark.xid)}
