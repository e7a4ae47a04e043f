"""Log-ins of browsers: opened for a credential, believed while that counts, closed. Both ends are audited."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from duly.client.app import App
from duly.control.asked import Asked
from duly.control.audited import note, transaction
from duly.control.keys import unknown_credential
from duly.model.access import SCOPES_OF, Principal, Scope
from duly.model.errors import Forbidden
from duly.model.job import Actor, ActorType
from duly.store import sessions
from duly.store.pool import Connection
from duly.store.sessions import Login

LASTS = timedelta(hours=12)
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class NewSession:
    """A log-in and its token, which is told this once and kept nowhere."""

    expires_at: datetime
    token: str = field(repr=False)


class Sessions:
    """The log-ins of an application: each stands for a key or for a member, and ends with it."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def open(self, who: Principal) -> NewSession:
        """Let somebody whose credential was believed come back without it."""
        if who.actor.type not in (ActorType.API_KEY, ActorType.USER):
            raise Forbidden(
                "a token for the installation opens no session",
                field="credential",
                fix="log in with a key, or as a member of an org",
            )
        token = secrets.token_urlsafe(_TOKEN_BYTES)

        async def change(conn: Connection) -> datetime:
            ends = await sessions.open_session(
                conn,
                who.org_id,
                _hash(token),
                key_id=who.actor.id if who.actor.type is ActorType.API_KEY else None,
                user_id=who.actor.id if who.actor.type is ActorType.USER else None,
                lasts=_lasts(who),
            )
            await note(conn, Asked(who.actor, None), who.org_id, "session.opened", _name(token))
            return ends

        return NewSession(await transaction(self._app, change), token)

    async def believe(self, token: str) -> Principal:
        """Whoever has logged in so, with the rights they have now; the same error for all that is not one."""
        async with (await self._app.ground()).database.engine_session() as conn:
            found = await sessions.find_session(conn, _hash(token))
        if found is None:
            raise unknown_credential()
        return _principal(found)

    async def close(self, who: Principal, token: str) -> None:
        """End a log-in. Asked again, it changes nothing."""

        async def change(conn: Connection) -> None:
            if await sessions.close_session(conn, who.org_id, _hash(token)):
                await note(conn, Asked(who.actor, None), who.org_id, "session.closed", _name(token))

        await transaction(self._app, change)


def _lasts(who: Principal) -> timedelta:
    """No longer than what it stands for."""
    if who.expires_at is None:
        return LASTS
    return max(min(LASTS, who.expires_at - datetime.now(UTC)), timedelta(0))


def _principal(found: Login) -> Principal:
    if found.user_id is not None and found.role is not None:
        return Principal(found.org_id, Actor.user(found.user_id), SCOPES_OF[found.role])
    # A scope that a later version knows gives no right here.
    scopes = frozenset(Scope(scope) for scope in found.scopes or () if scope in set(Scope))
    return Principal(found.org_id, Actor.api_key(str(found.key_id)), scopes, found.environment or "live")


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _name(token: str) -> str:
    """What it is called in the audit trail: tells log-ins apart, and opens nothing."""
    return _hash(token).hex()[:16]
