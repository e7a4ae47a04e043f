"""SQL of API keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import first, rows
from duly.db.statements import statement
from duly.features.api_keys.models import ApiKey


class StoredKey(NamedTuple):
    """A key with the hash of its secret, and the database's time."""

    key: ApiKey
    secret_hash: bytes
    now: datetime


async def create_key(conn: Connection, values: Mapping[str, Any]) -> ApiKey:
    """Write a new key."""
    [row] = await rows(conn, "api_keys/create", values)
    return _key(row)


async def find_key(conn: Connection, key_id: str) -> StoredKey | None:
    """Return the key of that id in any active org."""
    row = await first(conn, "api_keys/find", {"key_id": key_id})
    return StoredKey(_key(row), row["secret_hash"], row["now"]) if row else None


async def list_keys(conn: Connection, org_id: UUID, after: str, *, limit: int) -> list[ApiKey]:
    """Return the next keys of an org, by id."""
    found = await rows(conn, "api_keys/list", {"org_id": org_id, "after": after, "limit": limit})
    return [_key(row) for row in found]


async def count_live_keys(conn: Connection, org_id: UUID) -> tuple[int, datetime]:
    """Return the number of keys of an org that are neither expired nor revoked, and the database's time."""
    [row] = await rows(conn, "api_keys/count_live", {"org_id": org_id})
    return row["live"], row["now"]


async def read_key(conn: Connection, org_id: UUID, key_id: str) -> ApiKey | None:
    """Return one key of an org."""
    row = await first(conn, "api_keys/read", {"org_id": org_id, "key_id": key_id})
    return _key(row) if row else None


async def lock_key(conn: Connection, org_id: UUID, key_id: str) -> ApiKey | None:
    """Lock one key of an org for a change."""
    row = await first(conn, "api_keys/lock", {"org_id": org_id, "key_id": key_id})
    return _key(row) if row else None


async def revoke_key(conn: Connection, key: ApiKey, overlap: timedelta) -> ApiKey:
    """Revoke a locked key once the overlap is over."""
    values = {"org_id": key.org_id, "key_id": key.key_id, "overlap": overlap}
    [row] = await rows(conn, "api_keys/revoke", values)
    return _key(row)


async def touch_key(conn: Connection, key: ApiKey) -> None:
    """Record that a key is used, unless its use was recorded since it was read; never wait for a lock."""
    await conn.execute(statement("api_keys/lock_table"))
    values = {"org_id": key.org_id, "key_id": key.key_id, "last_used_at": key.last_used_at}
    await conn.execute(statement("api_keys/touch"), values)


def _key(row: Mapping[str, Any]) -> ApiKey:
    ends = [at for at in (row["expires_at"], row["revoked_at"]) if at is not None]
    return ApiKey.model_validate({**row, "alive": all(at > row["now"] for at in ends)})
