"""API keys: made, listed, rotated, revoked and believed. Each change is audited in its transaction."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from duly.core.errors import Conflict, StoreError, Unauthenticated, UnknownKey
from duly.core.job import Actor
from duly.core.principal import Principal, Scope
from duly.db.pool import Connection
from duly.features.api_keys import store as access
from duly.features.api_keys.rules import (
    KeyText,
    check_expiry,
    checked_environment,
    checked_moment,
    checked_overlap,
    checked_scopes,
)
from duly.features.api_keys.store import ApiKey, FoundKey
from duly.features.arguments import check_org_exists, org_uuid, required_text
from duly.features.audit.entries import ChangeRequest, audited_transaction, change_request, record_entry
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, page_size, split_page, text_cursor
from duly.jobs.application import App

__all__ = ["ApiKey", "KeyPage", "Keys", "NewKey"]

log = logging.getLogger("duly.api_keys")
MOST_KEYS = 1_000
"""Keys of an org that count at a time."""
_NOTES_APART = timedelta(minutes=1)
_AT_ONCE = timedelta(0)
_NOBODYS = bytes(32)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key and its text, which is shown this once and kept nowhere."""

    key: ApiKey
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Some keys; `after` asks for those that follow, and is None at the end."""

    keys: tuple[ApiKey, ...]
    after: str | None


class Keys:
    """The API keys of the orgs of an application. Those of the installation are the system's org's."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def create(
        self,
        org_id: UUID | str,
        name: str,
        scopes: Iterable[Scope | str],
        *,
        environment: str = "live",
        expires_at: datetime | None = None,
        actor: Actor,
        reason: str,
    ) -> NewKey:
        """Make a key; its text is told here and never again."""
        whose, who = org_uuid(org_id), change_request(actor, reason)
        end = checked_moment(expires_at)
        wanted = {
            "org_id": whose,
            "name": required_text("name", name),
            "scopes": checked_scopes(whose, scopes),
            "environment": checked_environment(environment),
        }

        async def change(conn: Connection) -> NewKey:
            await lock_org(conn, whose)
            return await _made(conn, wanted, end, who)

        return await audited_transaction(self._app, change)

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> KeyPage:
        """The keys of an org, also those that have ended; an unknown org raises."""
        whose, size, start = org_uuid(org_id), page_size(limit), decode_cursor(after, text_cursor) or ""
        async with self._app.tenant_session(whose) as conn:
            found = await access.list_keys(conn, whose, start, limit=size + 1)
            if not found:
                await check_org_exists(conn, whose)
        return KeyPage(*split_page(found, size, lambda last: last.key_id))

    async def get(self, org_id: UUID | str, key_id: str) -> ApiKey:
        """One key; an unknown id raises."""
        whose, which = org_uuid(org_id), required_text("key_id", key_id)
        async with self._app.tenant_session(whose) as conn:
            return _found(await access.read_key(conn, whose, which))

    async def revoke(self, org_id: UUID | str, key_id: str, *, actor: Actor, reason: str) -> ApiKey:
        """End a key at once, whichever overlap it has. Asked again, it changes nothing."""
        whose, which, who = org_uuid(org_id), required_text("key_id", key_id), change_request(actor, reason)

        async def change(conn: Connection) -> ApiKey:
            key = await _locked(conn, whose, which)
            ended = await access.end_key(conn, key, _AT_ONCE)
            if ended.revoked_at != key.revoked_at:
                await record_entry(conn, who, whose, "key.revoked", which, name=key.name)
            return ended

        return await audited_transaction(self._app, change)

    async def rotate(
        self,
        org_id: UUID | str,
        key_id: str,
        *,
        overlap: timedelta = timedelta(days=1),
        actor: Actor,
        reason: str,
    ) -> NewKey:
        """Make a successor that may do the same, for as long as the old key was made for.

        The old one counts beside it until the overlap is over, and can still be revoked before that.
        """
        whose, which, who = org_uuid(org_id), required_text("key_id", key_id), change_request(actor, reason)
        beside = checked_overlap(overlap)

        async def change(conn: Connection) -> NewKey:
            await lock_org(conn, whose)
            old = await _locked(conn, whose, which)
            if not old.alive:
                raise Conflict("this key has ended", field="key_id", fix="create a new key")
            lifetime = old.expires_at - old.created_at if old.expires_at else None
            ending = await access.end_key(conn, old, beside)
            new = await _made(conn, _same_rights(old), lifetime, who, successor_of=which)
            said = {**_said(ending, "name", "revoked_at"), "successor": new.key.key_id}
            await record_entry(conn, who, whose, "key.rotated", which, **said)
            return new

        return await audited_transaction(self._app, change)

    async def authenticate(self, text: str) -> Principal:
        """Whoever holds this key. What is no key, unknown, over or wrong raises, always in the same way."""
        given = KeyText.read(text)
        if given is None:
            raise unknown_credential()
        async with (await self._app.resources()).database.engine() as conn:
            found = _proven(given, await access.find_key(conn, given.key_id))
        last = found.key.last_used_at
        if last is None or last <= found.now - _NOTES_APART:
            await self._note_use(found.key)
        # One that a later version knows gives no right here.
        scopes = frozenset(Scope(scope) for scope in found.key.scopes if scope in set(Scope))
        return Principal(found.key.org_id, Actor.api_key(given.key_id), scopes, given.environment)

    async def _note_use(self, key: ApiKey) -> None:
        """In a transaction of its own, that waits for no lock: whoever came in must not be kept by it."""
        try:
            async with (await self._app.resources()).database.engine() as conn:
                await access.touch_key(conn, key)
        except (psycopg.Error, StoreError) as error:
            log.warning("the use of key %s is not noted: %s", key.key_id, error)


def unknown_credential() -> Unauthenticated:
    """The same answer whatever is wrong with it."""
    return Unauthenticated(
        "this credential is not known",
        field="authorization",
        fix="send `Authorization: Bearer <key or token>`",
    )


def _proven(given: KeyText, found: FoundKey | None) -> FoundKey:
    """What was found, if it is the key that was given."""
    # The same work for an unknown id as for a wrong secret: the time does not tell which it was.
    right = hmac.compare_digest(found.secret_hash if found else _NOBODYS, given.digest)
    if not right or found is None or not found.key.alive or found.key.environment != given.environment:
        raise unknown_credential()
    return found


async def _made(
    conn: Connection,
    wanted: Mapping[str, Any],
    end: datetime | timedelta | None,
    who: ChangeRequest,
    **detail: Any,
) -> NewKey:
    """A new key of a locked org; with an end, or with a lifetime."""
    live, now = await access.count_live_keys(conn, wanted["org_id"])
    if live >= MOST_KEYS:
        raise Conflict(f"this org has {live} keys", field="org_id", fix="revoke those that nobody uses")
    expires_at = now + end if isinstance(end, timedelta) else end
    check_expiry(expires_at, now)
    made = KeyText.new(wanted["environment"])
    kept = {"key_id": made.key_id, "secret_hash": made.digest, "created_by": who.by, "expires_at": expires_at}
    key = await access.create_key(conn, {**wanted, **kept})
    said = _said(key, "name", "environment", "scopes", "expires_at")
    await record_entry(conn, who, key.org_id, "key.created", key.key_id, **said, **detail)
    return NewKey(key, made.write())


def _same_rights(key: ApiKey) -> dict[str, Any]:
    return {**key.model_dump(include={"org_id", "name", "environment"}), "scopes": [*key.scopes]}


async def _locked(conn: Connection, org_id: UUID, key_id: str) -> ApiKey:
    return _found(await access.lock_key(conn, org_id, key_id))


def _found(key: ApiKey | None) -> ApiKey:
    if key is None:
        # Without the id: somebody may have passed the whole text of a key.
        raise UnknownKey("no key of this id in this org", field="key_id", fix="check the id and the org")
    return key


def _said(key: ApiKey, *names: str) -> dict[str, Any]:
    """Some of it for the audit trail."""
    return key.model_dump(mode="json", include={*names})
