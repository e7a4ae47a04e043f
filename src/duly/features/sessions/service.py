"""Browser sessions: open one for a credential, authenticate by its token, close it. Both ends are audited."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from duly.core.errors import Forbidden
from duly.core.job import SYSTEM_ORG, Actor, ActorType
from duly.core.principal import ROLE_SCOPES, Principal, Scope, known_scopes
from duly.db.pool import Connection
from duly.features.api_keys.service import unknown_credential
from duly.features.audit.entries import ChangeRequest, audited_transaction, record_entry
from duly.features.sessions import store
from duly.features.sessions.store import SessionOwner, SessionRights
from duly.jobs.application import App

SESSION_LIFETIME = timedelta(hours=12)
OPERATOR_SESSION_LIFETIME = timedelta(hours=1)
"""For operators who signed in with a token: nothing ends such a session when they lose their rights."""
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session and its token, which is returned only once and stored nowhere."""

    expires_at: datetime
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that has not expired."""

    name: str
    """Its name in the audit trail."""
    created_at: datetime
    expires_at: datetime
    current: bool
    """Whether the request came with this session."""


class Sessions:
    """The sessions of an application: each belongs to a key, a member or an operator, and ends with it."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def open(self, principal: Principal) -> NewSession:
        """Open a session for an authenticated principal."""
        owner, token = _owner(principal), secrets.token_urlsafe(_TOKEN_BYTES)

        async def change(conn: Connection) -> datetime:
            expires_at = await store.open_session(conn, owner, _hash(token), lifetime=_lifetime(principal))
            await _record(conn, principal, "opened", _hash(token))
            return expires_at

        return NewSession(await audited_transaction(self._app, change), token)

    async def authenticate(self, token: str) -> Principal:
        """Return the principal of a session with its current rights; every invalid token raises the same."""
        async with (await self._app.resources()).database.engine() as conn:
            session = await store.find_session(conn, _hash(token))
        if session is None:
            raise unknown_credential()
        return _principal(session)

    async def list(self, principal: Principal, token: str | None = None) -> tuple[OpenSession, ...]:
        """Return the sessions of the same key, member or operator, newest first."""
        async with (await self._app.resources()).database.engine() as conn:
            sessions = await store.list_sessions(conn, _owner(principal))
        own = token and _hash(token)
        return tuple(
            OpenSession(_name(one.session_hash), one.created_at, one.expires_at, one.session_hash == own)
            for one in sessions
        )

    async def close(self, principal: Principal, token: str) -> None:
        """Close a session. A second call changes nothing."""

        async def change(conn: Connection) -> None:
            if await store.close_session(conn, principal.org_id, _hash(token)):
                await _record(conn, principal, "closed", _hash(token))

        await audited_transaction(self._app, change)

    async def close_all(self, principal: Principal) -> int:
        """Close every session of the same key, member or operator; return how many."""

        async def change(conn: Connection) -> int:
            closed = await store.close_sessions(conn, _owner(principal))
            for session_hash in closed:
                await _record(conn, principal, "closed", session_hash)
            return len(closed)

        return await audited_transaction(self._app, change)


async def _record(conn: Connection, principal: Principal, action: str, session_hash: bytes) -> None:
    await record_entry(
        conn, ChangeRequest(principal.actor, None), principal.org_id, f"session.{action}", _name(session_hash)
    )


def _owner(principal: Principal) -> SessionOwner:
    org_id, actor = principal.org_id, principal.actor
    match actor.type:
        case ActorType.API_KEY:
            return SessionOwner(org_id, key_id=actor.id)
        case ActorType.USER:
            return SessionOwner(org_id, user_id=actor.id)
        case ActorType.OPERATOR if org_id == SYSTEM_ORG:
            return SessionOwner(org_id, operator_id=actor.id)
    raise Forbidden(
        f"a {actor.type.value} has no sessions", field="credential", fix="sign in with a key or a token"
    )


def _lifetime(principal: Principal) -> timedelta:
    """Return the lifetime of a session, not longer than that of the credential."""
    operator = principal.actor.type is ActorType.OPERATOR
    longest = OPERATOR_SESSION_LIFETIME if operator else SESSION_LIFETIME
    if principal.expires_at is None:
        return longest
    return max(min(longest, principal.expires_at - datetime.now(UTC)), timedelta(0))


def _principal(session: SessionRights) -> Principal:
    org_id = session.org_id
    if session.operator_id is not None:
        return Principal(org_id, Actor.operator(session.operator_id), frozenset({Scope.PLATFORM}))
    if session.user_id is not None and session.role is not None:
        return Principal(org_id, Actor.user(session.user_id), ROLE_SCOPES[session.role])
    actor = Actor.api_key(str(session.key_id))
    return Principal(org_id, actor, known_scopes(session.scopes or ()), session.environment or "live")


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _name(session_hash: bytes) -> str:
    """Return the name of a session in the audit trail: it identifies the session and is no credential."""
    return session_hash.hex()[:16]
