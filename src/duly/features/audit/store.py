"""The audit trail: who changed what, when and why. Written with the change, then sealed, and never again."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import dict_row
from pydantic import BaseModel, ConfigDict

from duly.core.job import ActorType
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER
from duly.db.statements import statement
from duly.features.audit.chain import Place, Row

START: Place = (0, datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))
"""Before the first entry of every chain."""
_SEALS_AT_ONCE = 20


class AuditEntry(BaseModel):
    """One line of the audit trail."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    entry_id: UUID
    occurred_at: datetime
    actor_type: ActorType
    actor_id: str
    action: str
    target_type: str
    target_id: str
    reason: str | None
    request_id: str | None
    correlation_id: str | None
    detail: dict[str, Any]


class Held(NamedTuple):
    """Where the sealing goes on, held by this transaction."""

    place: Place
    now: datetime
    ahead: bool
    """Whether no transaction of this server has come as far."""


class Mark(NamedTuple):
    """How far the sealing has come, and since when entries are kept."""

    place: Place
    kept_since: datetime | None


class Rest(NamedTuple):
    """What lies behind the last seal."""

    unsealed: int
    bare: int
    """Those of them that had a seal once."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some seals that follow one another, and all entries from the first to the last of them."""

    seals: list[dict[str, Any]]
    entries: list[dict[str, Any]]


async def hold_mark(conn: Connection) -> Held | None:
    """Take the sealing over for this transaction; None if somebody else has it."""
    rows = await _rows(conn, "audit/hold_mark", {})
    return Held(_place(rows[0]), rows[0]["now"], rows[0]["ahead"]) if rows else None


async def unsealed(conn: Connection, after: Place, *, limit: int) -> list[dict[str, Any]]:
    """The next entries of all orgs to be sealed, in the order of the chain."""
    xid, at, entry_id = after
    values = {"commit_xid": str(xid), "occurred_at": at, "entry_id": entry_id, "limit": limit}
    return await _rows(conn, "audit/read_unsealed", values)


async def last_seals(conn: Connection, org_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
    """The last seal of each org that has one."""
    rows = await _rows(conn, "audit/read_last_seals", {"org_ids": list(org_ids)})
    return {row["org_id"]: row for row in rows}


async def write_seals(conn: Connection, seals: Sequence[Row], upto: Place) -> None:
    """Write seals, and move the mark to where they end."""
    document = json.dumps([{name: _text(value) for name, value in seal.items()} for seal in seals])
    await conn.execute(statement("audit/write_seals"), {"seals": document})
    xid, at, entry_id = upto
    values = {"commit_xid": str(xid), "occurred_at": at, "entry_id": entry_id}
    await conn.execute(statement("audit/move_mark"), values)


async def read_mark(conn: Connection) -> Mark:
    """How far the sealing has come; on an engine session."""
    [row] = await _rows(conn, "audit/read_mark", {})
    return Mark(_place(row), row["kept_since"])


async def stretch(conn: Connection, org_id: UUID, after_seq: int, after: Place) -> Stretch | None:
    """The next seals of an org with their entries; None after the last."""
    values = {"org_id": org_id, "after": after_seq, "limit": _SEALS_AT_ONCE}
    seals = await _rows(conn, "audit/read_seals", values)
    if not seals:
        return None
    ends = {"org_id": org_id, **_named("after", after), **_named("upto", _end(seals[-1]))}
    return Stretch(seals, await _rows(conn, "audit/read_chain", ends))


async def rest(conn: Connection, org_id: UUID, after: Place, mark: Place) -> Rest:
    """How many entries lie behind the last seal of an org."""
    values = {"org_id": org_id, **_named("after", after), **_named("mark", mark)}
    [row] = await _rows(conn, "audit/count_rest", values)
    return Rest(**row)


async def read_rest(conn: Connection, org_id: UUID, after: Place, *, limit: int) -> list[dict[str, Any]]:
    """The next entries behind a place of the chain."""
    values = {"org_id": org_id, **_named("after", after), "limit": limit}
    return await _rows(conn, "audit/read_rest", values)


async def newest(
    conn: Connection, org_id: UUID, before: tuple[datetime, UUID], since: datetime, *, most: int
) -> list[AuditEntry]:
    """The next entries of an org, the newest first."""
    values = {"org_id": org_id, "before_at": before[0], "before_id": before[1], "since": since, "look": most}
    await conn.execute(PREFER_INDEX_ORDER)
    return [AuditEntry.model_validate(row) for row in await _rows(conn, "audit/list", values)]


async def orgs(conn: Connection) -> list[UUID]:
    """Every org that has, or may have, an audit trail; on an engine session."""
    return [row["org_id"] for row in await _rows(conn, "audit/list_orgs", {})]


def _place(row: Row) -> Place:
    return int(row["commit_xid"]), row["occurred_at"], row["entry_id"]


def _end(seal: Row) -> Place:
    return int(seal["last_commit_xid"]), seal["last_occurred_at"], seal["last_entry_id"]


def _named(name: str, place: Place) -> dict[str, Any]:
    return {f"{name}_xid": str(place[0]), f"{name}_at": place[1], f"{name}_id": place[2]}


def _text(value: Any) -> Any:
    """A value as PostgreSQL reads it from JSON."""
    match value:
        case bytes():
            return f"\\x{value.hex()}"
        case list():
            return [_text(inner) for inner in value]
        case int():
            return value
        case _:
            return str(value)


async def _rows(conn: Connection, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), values)
        return await cursor.fetchall()
