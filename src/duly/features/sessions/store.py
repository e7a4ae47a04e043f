"""SQL of browser sessions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from duly.core.principal import Role
from duly.db.pool import Connection
from duly.db.rows import first, rows


class SessionOwner(NamedTuple):
    """The owner of sessions: an API key, a member, or an operator of the installation."""

    org_id: UUID
    key_id: str | None = None
    user_id: str | None = None
    operator_id: str | None = None


class SessionRights(NamedTuple):
    """A session with the current rights of its owner: the scopes of the key, or the role of the member."""

    org_id: UUID
    key_id: str | None
    user_id: str | None
    operator_id: str | None
    expires_at: datetime
    scopes: list[str] | None
    environment: str | None
    role: Role | None


class StoredSession(NamedTuple):
    """A session that has not expired."""

    session_hash: bytes
    created_at: datetime
    expires_at: datetime


async def open_session(
    conn: Connection, owner: SessionOwner, session_hash: bytes, *, lifetime: timedelta
) -> datetime:
    """Write a session; return when it expires."""
    values = {**owner._asdict(), "session_hash": session_hash, "lifetime": lifetime}
    [row] = await rows(conn, "sessions/open", values)
    expires_at: datetime = row["expires_at"]
    return expires_at


async def find_session(conn: Connection, session_hash: bytes) -> SessionRights | None:
    """Return the session of a hash in any active org; None if it has expired, or its owner has."""
    row = await first(conn, "sessions/find", {"session_hash": session_hash})
    return SessionRights(**{**row, "role": row["role"] and Role(row["role"])}) if row else None


async def list_sessions(conn: Connection, owner: SessionOwner) -> list[StoredSession]:
    """Return the sessions of an owner, newest first."""
    return [StoredSession(**row) for row in await rows(conn, "sessions/list", owner._asdict())]


async def close_session(conn: Connection, org_id: UUID, session_hash: bytes) -> bool:
    """Delete a session; return whether it existed."""
    return await first(conn, "sessions/close", {"org_id": org_id, "session_hash": session_hash}) is not None


async def close_sessions(conn: Connection, owner: SessionOwner) -> list[bytes]:
    """Delete all sessions of an owner; return their hashes."""
    return [row["session_hash"] for row in await rows(conn, "sessions/close_all", owner._asdict())]
