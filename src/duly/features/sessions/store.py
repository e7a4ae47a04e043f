"""Log-ins of browsers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from duly.core.principal import Role
from duly.db.pool import Connection
from duly.db.rows import first, rows


class Holder(NamedTuple):
    """Whom log-ins stand for: a key, a member, or who looks after the installation."""

    org_id: UUID
    key_id: str | None = None
    user_id: str | None = None
    operator_id: str | None = None


class Login(NamedTuple):
    """A log-in, and what it is worth now: the rights of its key, or the role of its member."""

    org_id: UUID
    key_id: str | None
    user_id: str | None
    operator_id: str | None
    expires_at: datetime
    scopes: list[str] | None
    environment: str | None
    role: Role | None


class Kept(NamedTuple):
    """A log-in that is not over."""

    session_hash: bytes
    created_at: datetime
    expires_at: datetime


async def open_session(
    conn: Connection, holder: Holder, session_hash: bytes, *, lasts: timedelta
) -> datetime:
    """Keep a log-in; when it ends."""
    values = {**holder._asdict(), "session_hash": session_hash, "lasts": lasts}
    [row] = await rows(conn, "sessions/open", values)
    ends: datetime = row["expires_at"]
    return ends


async def find_session(conn: Connection, session_hash: bytes) -> Login | None:
    """The log-in of that hash, of whichever active org; None if it is over, or what it stands for is."""
    row = await first(conn, "sessions/find", {"session_hash": session_hash})
    return Login(**{**row, "role": row["role"] and Role(row["role"])}) if row else None


async def list_sessions(conn: Connection, holder: Holder) -> list[Kept]:
    """The log-ins that stand for them, the newest first."""
    return [Kept(**row) for row in await rows(conn, "sessions/list", holder._asdict())]


async def close_session(conn: Connection, org_id: UUID, session_hash: bytes) -> bool:
    """End a log-in; whether it was there."""
    return await first(conn, "sessions/close", {"org_id": org_id, "session_hash": session_hash}) is not None


async def close_sessions(conn: Connection, holder: Holder) -> list[bytes]:
    """End all that stand for them; their hashes."""
    return [row["session_hash"] for row in await rows(conn, "sessions/close_all", holder._asdict())]
