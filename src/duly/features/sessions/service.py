"""Log-ins of browsers: opened for a credential, believed while that counts, closed. Both ends are audited."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from duly.core.errors import Forbidden
from duly.core.job import SYSTEM_ORG, Actor, ActorType
from duly.core.principal import ROLE_SCOPES, Principal, Scope
from duly.db.pool import Connection
from duly.features.api_keys.service import unknown_credential
from duly.features.audit.entries import ChangeRequest, audited_transaction, record_entry
from duly.features.sessions import store as sessions
from duly.features.sessions.store import Holder, Login
from duly.jobs.application import App

LASTS = timedelta(hours=12)
OPERATORS_LAST = timedelta(hours=1)
"""Of those who look after the installation by a token: nothing here ends such a log-in with their rights."""
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class NewSession:
    """A log-in and its token, which is told this once and kept nowhere."""

    expires_at: datetime
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A log-in that is not over."""

    name: str
    """As in the audit trail."""
    created_at: datetime
    expires_at: datetime
    current: bool
    """Whether it is the one that was asked with."""


class Sessions:
    """The log-ins of an application: each stands for a key, a member or an operator, and ends with it."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def open(self, who: Principal) -> NewSession:
        """Let somebody whose credential was believed come back without it."""
        holder, token = _holder(who), secrets.token_urlsafe(_TOKEN_BYTES)

        async def change(conn: Connection) -> datetime:
            ends = await sessions.open_session(conn, holder, _hash(token), lasts=_lasts(who))
            await record_entry(
                conn, ChangeRequest(who.actor, None), who.org_id, "session.opened", _name(_hash(token))
            )
            return ends

        return NewSession(await audited_transaction(self._app, change), token)

    async def authenticate(self, token: str) -> Principal:
        """Whoever has logged in so, with the rights they have now; the same error for all that is not one."""
        async with (await self._app.resources()).database.engine() as conn:
            found = await sessions.find_session(conn, _hash(token))
        if found is None:
            raise unknown_credential()
        return _principal(found)

    async def list(self, who: Principal, token: str | None = None) -> tuple[OpenSession, ...]:
        """The log-ins that stand for the same key, member or operator, the newest first."""
        async with (await self._app.resources()).database.engine() as conn:
            kept = await sessions.list_sessions(conn, _holder(who))
        own = token and _hash(token)
        return tuple(
            OpenSession(_name(one.session_hash), one.created_at, one.expires_at, one.session_hash == own)
            for one in kept
        )

    async def close(self, who: Principal, token: str) -> None:
        """End a log-in. Asked again, it changes nothing."""

        async def change(conn: Connection) -> None:
            if await sessions.close_session(conn, who.org_id, _hash(token)):
                await record_entry(
                    conn, ChangeRequest(who.actor, None), who.org_id, "session.closed", _name(_hash(token))
                )

        await audited_transaction(self._app, change)

    async def close_all(self, who: Principal) -> int:
        """End every log-in that stands for the same key, member or operator; how many there were."""

        async def change(conn: Connection) -> int:
            ended = await sessions.close_sessions(conn, _holder(who))
            for one in ended:
                await record_entry(
                    conn, ChangeRequest(who.actor, None), who.org_id, "session.closed", _name(one)
                )
            return len(ended)

        return await audited_transaction(self._app, change)


def _holder(who: Principal) -> Holder:
    """Whom a log-in of theirs stands for."""
    match who.actor.type:
        case ActorType.API_KEY:
            return Holder(who.org_id, key_id=who.actor.id)
        case ActorType.USER:
            return Holder(who.org_id, user_id=who.actor.id)
        case ActorType.OPERATOR if who.org_id == SYSTEM_ORG:
            return Holder(who.org_id, operator_id=who.actor.id)
    raise Forbidden(
        f"a {who.actor.type.value} has no log-ins", field="credential", fix="log in with a key or a token"
    )


def _lasts(who: Principal) -> timedelta:
    """No longer than what it stands for."""
    most = OPERATORS_LAST if who.actor.type is ActorType.OPERATOR else LASTS
    if who.expires_at is None:
        return most
    return max(min(most, who.expires_at - datetime.now(UTC)), timedelta(0))


def _principal(found: Login) -> Principal:
    if found.operator_id is not None:
        return Principal(found.org_id, Actor.operator(found.operator_id), frozenset({Scope.PLATFORM}))
    if found.user_id is not None and found.role is not None:
        return Principal(found.org_id, Actor.user(found.user_id), ROLE_SCOPES[found.role])
    # A scope that a later version knows gives no right here.
    scopes = frozenset(Scope(scope) for scope in found.scopes or () if scope in set(Scope))
    return Principal(found.org_id, Actor.api_key(str(found.key_id)), scopes, found.environment or "live")


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _name(session_hash: bytes) -> str:
    """What it is called in the audit trail: tells log-ins apart, and opens nothing."""
    return session_hash.hex()[:16]
