"""API keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.rows import first, rows
from duly.db.statements import statement


class ApiKey(BaseModel):
    """A key as it is kept: everything but its secret."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    key_id: str
    name: str
    environment: str
    scopes: tuple[str, ...]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    """Of a key that was rotated, when its overlap is over: that may be to come."""
    last_used_at: datetime | None
    """To the minute."""
    alive: bool
    """Whether it counted when it was read. In a suspended org it is not believed all the same."""


class FoundKey(NamedTuple):
    """A key that a caller named, and what decides whether they are believed."""

    key: ApiKey
    secret_hash: bytes
    now: datetime


async def create_key(conn: Connection, values: Mapping[str, Any]) -> ApiKey:
    """Keep a new key."""
    [row] = await rows(conn, "api_keys/create", values)
    return _key(row)


async def find_key(conn: Connection, key_id: str) -> FoundKey | None:
    """The key of that id, in whichever active org it is."""
    row = await first(conn, "api_keys/find", {"key_id": key_id})
    return FoundKey(_key(row), row["secret_hash"], row["now"]) if row else None


async def list_keys(conn: Connection, org_id: UUID, after: str, *, limit: int) -> list[ApiKey]:
    """The next keys of an org."""
    found = await rows(conn, "api_keys/list", {"org_id": org_id, "after": after, "limit": limit})
    return [_key(row) for row in found]


async def count_live_keys(conn: Connection, org_id: UUID) -> tuple[int, datetime]:
    """How many keys of an org count, and the time."""
    [row] = await rows(conn, "api_keys/count_live", {"org_id": org_id})
    return row["live"], row["now"]


async def read_key(conn: Connection, org_id: UUID, key_id: str) -> ApiKey | None:
    """One key of an org."""
    row = await first(conn, "api_keys/read", {"org_id": org_id, "key_id": key_id})
    return _key(row) if row else None


async def lock_key(conn: Connection, org_id: UUID, key_id: str) -> ApiKey | None:
    """One key of an org, to be changed."""
    row = await first(conn, "api_keys/lock", {"org_id": org_id, "key_id": key_id})
    return _key(row) if row else None


async def end_key(conn: Connection, key: ApiKey, overlap: timedelta) -> ApiKey:
    """End a locked key when so much time has passed."""
    [row] = await rows(conn, "api_keys/end", {**_whose(key), "overlap": overlap})
    return _key(row)


async def touch_key(conn: Connection, key: ApiKey) -> None:
    """Note that a key was used since it was read; waits for nobody, in a transaction of its own."""
    await conn.execute(statement("api_keys/open_notes"))
    await conn.execute(statement("api_keys/touch"), {**_whose(key), "seen": key.last_used_at})


def _key(row: Mapping[str, Any]) -> ApiKey:
    ends = [at for at in (row["expires_at"], row["revoked_at"]) if at is not None]
    return ApiKey.model_validate({**row, "alive": all(at > row["now"] for at in ends)})


def _whose(key: ApiKey) -> dict[str, Any]:
    return {"org_id": key.org_id, "key_id": key.key_id}
