"""SQL of the audit trail: entries, seals, and the mark up to which entries are sealed."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, rows
from duly.db.statements import statement
from duly.features.audit.chain import ChainPosition, Row, entry_position, seal_position
from duly.features.audit.models import AuditEntry

CHAIN_START: ChainPosition = (0, datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))
"""Before the first entry of every chain."""
_SEALS_PER_READ = 20


class LockedAuditMark(NamedTuple):
    """The position after which sealing continues, locked by this transaction."""

    position: ChainPosition
    now: datetime
    ahead: bool
    """Whether it is ahead of every transaction of this server."""


class AuditMark(NamedTuple):
    """The position up to which entries are sealed, and the start of the retained entries."""

    position: ChainPosition
    retained_since: datetime | None


class UnsealedCount(NamedTuple):
    """The number of entries after the last seal of an org."""

    unsealed: int
    seal_lost: int
    """Those before the mark: they had a seal."""


class ChainSegment(NamedTuple):
    """Consecutive seals of an org, and all entries that they cover."""

    seals: list[dict[str, Any]]
    entries: list[dict[str, Any]]


async def lock_mark(conn: Connection) -> LockedAuditMark | None:
    """Lock the mark for this transaction; None if another sealer holds it."""
    row = await first(conn, "audit/lock_mark", {})
    return LockedAuditMark(entry_position(row), row["now"], row["ahead"]) if row else None


async def read_unsealed(conn: Connection, after: ChainPosition, *, limit: int) -> list[dict[str, Any]]:
    """Return the next entries to seal, of all orgs, in the order of the chain."""
    return await rows(conn, "audit/read_unsealed", {**_position("after", after), "limit": limit})


async def read_last_seals(conn: Connection, org_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
    """Return the last seal of each org that has one."""
    seals = await rows(conn, "audit/read_last_seals", {"org_ids": list(org_ids)})
    return {seal["org_id"]: seal for seal in seals}


async def write_seals(conn: Connection, seals: Sequence[Row], upto: ChainPosition) -> None:
    """Write seals, and move the mark to their end."""
    document = json.dumps([{name: _json(value) for name, value in seal.items()} for seal in seals])
    await conn.execute(statement("audit/write_seals"), {"seals": document})
    await conn.execute(statement("audit/move_mark"), _position("upto", upto))


async def read_mark(conn: Connection) -> AuditMark:
    """Return the mark; on an engine session."""
    [row] = await rows(conn, "audit/read_mark", {})
    return AuditMark(entry_position(row), row["retained_since"])


async def read_segment(
    conn: Connection, org_id: UUID, after_seq: int, after: ChainPosition
) -> ChainSegment | None:
    """Return the next seals of an org with their entries; None after the last seal."""
    values = {"org_id": org_id, "after": after_seq, "limit": _SEALS_PER_READ}
    seals = await rows(conn, "audit/read_seals", values)
    if not seals:
        return None
    bounds = {"org_id": org_id, **_position("after", after), **_position("upto", seal_position(seals[-1]))}
    return ChainSegment(seals, await rows(conn, "audit/read_chain", bounds))


async def count_unsealed(
    conn: Connection, org_id: UUID, after: ChainPosition, mark: ChainPosition
) -> UnsealedCount:
    """Count the entries after the last seal of an org."""
    values = {"org_id": org_id, **_position("after", after), **_position("mark", mark)}
    [row] = await rows(conn, "audit/count_unsealed", values)
    return UnsealedCount(**row)


async def read_after(
    conn: Connection, org_id: UUID, after: ChainPosition, *, limit: int
) -> list[dict[str, Any]]:
    """Return the next entries of an org after a position, in the order of the chain."""
    return await rows(
        conn, "audit/read_after", {"org_id": org_id, **_position("after", after), "limit": limit}
    )


async def list_entries(
    conn: Connection, org_id: UUID, before: tuple[datetime, UUID], since: datetime, *, limit: int
) -> list[AuditEntry]:
    """Return the next entries of an org, newest first."""
    values = {
        "org_id": org_id,
        "before_at": before[0],
        "before_id": before[1],
        "since": since,
        "limit": limit,
    }
    await conn.execute(PREFER_INDEX_ORDER)
    return [AuditEntry.model_validate(row) for row in await rows(conn, "audit/list", values)]


async def list_orgs(conn: Connection) -> list[UUID]:
    """Return every org that exists, or has entries or seals; on an engine session."""
    return [row["org_id"] for row in await rows(conn, "audit/list_orgs", {})]


def _position(name: str, position: ChainPosition) -> dict[str, Any]:
    return {f"{name}_xid": str(position[0]), f"{name}_at": position[1], f"{name}_id": position[2]}


def _json(value: Any) -> Any:
    """Return a value as PostgreSQL reads it from JSON."""
    match value:
        case bytes():
            return f"\\x{value.hex()}"
        case list():
            return [_json(inner) for inner in value]
        case int():
            return value
        case _:
            return str(value)
