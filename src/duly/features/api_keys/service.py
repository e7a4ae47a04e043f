"""API keys: create, list, rotate, revoke and authenticate. Each change is audited in its transaction."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from duly.core.errors import Conflict, ContractError, StoreError, Unauthenticated, UnknownKey
from duly.core.job import SYSTEM_ORG, Actor
from duly.core.principal import Principal, Scope, known_scopes
from duly.db.pool import Connection
from duly.deprecated_names import DeprecatedName
from duly.features.api_keys import store
from duly.features.api_keys.models import ApiKey, ApiKeyPage, KeyText, NewApiKey
from duly.features.api_keys.store import StoredKey
from duly.features.arguments import checked_overlap, org_uuid, required_text
from duly.features.audit.entries import ChangeRequest, audited_transaction, change_request, record_entry
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, read_org_page, text_cursor
from duly.jobs.application import App

log = logging.getLogger("duly.api_keys")
MAX_KEYS_PER_ORG = 1_000
"""The keys of an org that are neither expired nor revoked."""
_MAX_LIFETIME = timedelta(days=3653)
_TOUCH_INTERVAL = timedelta(minutes=1)
_ENVIRONMENT = re.compile(r"[a-z]{1,20}")
_NO_HASH = bytes(32)


class ApiKeys:
    """The API keys of the orgs of an application. Keys for operators belong to the system org."""

    believe = DeprecatedName("authenticate")

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
    ) -> NewApiKey:
        """Create a key; its text is returned only here."""
        org, request = org_uuid(org_id), change_request(actor, reason)
        if expires_at is not None and expires_at.tzinfo is None:
            raise ContractError("has no time zone", field="expires_at", fix="pass a time with its zone")
        values = {
            "org_id": org,
            "name": required_text("name", name),
            "scopes": _checked_scopes(org, scopes),
            "environment": _checked_environment(environment),
        }

        async def change(conn: Connection) -> NewApiKey:
            await lock_org(conn, org)
            return await _create_key(conn, values, expires_at, request)

        return await audited_transaction(self._app, change)

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> ApiKeyPage:
        """Return the keys of an org, including expired and revoked ones; an unknown org raises."""
        org, start = org_uuid(org_id), decode_cursor(after, text_cursor) or ""

        async def read(conn: Connection, size: int) -> Sequence[ApiKey]:
            return await store.list_keys(conn, org, start, limit=size)

        return ApiKeyPage(*await read_org_page(self._app, org, read, lambda last: last.key_id, limit=limit))

    async def get(self, org_id: UUID | str, key_id: str) -> ApiKey:
        """Return one key; an unknown id raises."""
        org, key = org_uuid(org_id), required_text("key_id", key_id)
        async with self._app.tenant_session(org) as conn:
            return _require(await store.read_key(conn, org, key))

    async def revoke(self, org_id: UUID | str, key_id: str, *, actor: Actor, reason: str) -> ApiKey:
        """Revoke a key at once, even during an overlap. A second call changes nothing."""
        org, request = org_uuid(org_id), change_request(actor, reason)
        required_text("key_id", key_id)

        async def change(conn: Connection) -> ApiKey:
            key = _require(await store.lock_key(conn, org, key_id))
            revoked = await store.revoke_key(conn, key, timedelta(0))
            if revoked.revoked_at != key.revoked_at:
                await record_entry(conn, request, org, "key.revoked", key_id, name=key.name)
            return revoked

        return await audited_transaction(self._app, change)

    async def rotate(
        self,
        org_id: UUID | str,
        key_id: str,
        *,
        overlap: timedelta = timedelta(days=1),
        actor: Actor,
        reason: str,
    ) -> NewApiKey:
        """Create a successor with the same scopes and the same lifetime.

        The old key works until the overlap is over, and can still be revoked before that.
        """
        org, request = org_uuid(org_id), change_request(actor, reason)
        required_text("key_id", key_id)
        checked_overlap(overlap)

        async def change(conn: Connection) -> NewApiKey:
            await lock_org(conn, org)
            old = _require(await store.lock_key(conn, org, key_id))
            if not old.alive:
                raise Conflict("this key has ended", field="key_id", fix="create a new key")
            lifetime = old.expires_at - old.created_at if old.expires_at else None
            revoked = await store.revoke_key(conn, old, overlap)
            values = {**dict(old), "scopes": [*old.scopes]}
            new = await _create_key(conn, values, lifetime, request, successor_of=key_id)
            detail = {**_audit_detail(revoked, "name", "revoked_at"), "successor": new.key.key_id}
            await record_entry(conn, request, org, "key.rotated", key_id, **detail)
            return new

        return await audited_transaction(self._app, change)

    async def authenticate(self, text: str) -> Principal:
        """Return the principal of a key. Invalid, unknown, expired and revoked keys raise the same error."""
        parsed = KeyText.parse(text)
        if parsed is None:
            raise unknown_credential()
        async with (await self._app.resources()).database.engine() as conn:
            stored = _verify(parsed, await store.find_key(conn, parsed.key_id))
        last_used_at = stored.key.last_used_at
        if last_used_at is None or last_used_at <= stored.now - _TOUCH_INTERVAL:
            await self._touch(stored.key)
        scopes = known_scopes(stored.key.scopes)
        return Principal(stored.key.org_id, Actor.api_key(parsed.key_id), scopes, parsed.environment)

    async def _touch(self, key: ApiKey) -> None:
        """Record the use in a transaction that waits for no lock: it must not delay the request."""
        try:
            async with (await self._app.resources()).database.engine() as conn:
                await store.touch_key(conn, key)
        except (psycopg.Error, StoreError) as error:
            log.warning("could not record the use of key %s: %s", key.key_id, error)


def unknown_credential() -> Unauthenticated:
    """Return the one error for every invalid credential: it does not tell what is wrong."""
    return Unauthenticated(
        "this credential is not known",
        field="authorization",
        fix="send `Authorization: Bearer <key or token>`",
    )


def _verify(parsed: KeyText, stored: StoredKey | None) -> StoredKey:
    """Return the stored key if the secret is right and the key is alive, or raise."""
    # The same work for an unknown id as for a wrong secret: the time does not tell which it was.
    right = hmac.compare_digest(stored.secret_hash if stored else _NO_HASH, parsed.digest)
    if not right or stored is None or not stored.key.alive or stored.key.environment != parsed.environment:
        raise unknown_credential()
    return stored


async def _create_key(
    conn: Connection,
    values: Mapping[str, Any],
    expiry: datetime | timedelta | None,
    request: ChangeRequest,
    **detail: Any,
) -> NewApiKey:
    """Create a key of a locked org; `expiry` is a time or a lifetime."""
    live, now = await store.count_live_keys(conn, values["org_id"])
    if live >= MAX_KEYS_PER_ORG:
        raise Conflict(f"this org has {live} keys", field="org_id", fix="revoke unused keys")
    expires_at = now + expiry if isinstance(expiry, timedelta) else expiry
    if expires_at is not None and not now < expires_at <= now + _MAX_LIFETIME:
        raise ContractError(
            f"{expires_at.isoformat()} is in the past, or more than ten years ahead",
            field="expires_at",
            fix="pass a future time, or None for a key that does not expire",
        )
    text = KeyText.generate(values["environment"])
    key = await store.create_key(
        conn,
        {
            **values,
            "key_id": text.key_id,
            "secret_hash": text.digest,
            "created_by": request.by,
            "expires_at": expires_at,
        },
    )
    detail |= _audit_detail(key, "name", "environment", "scopes", "expires_at")
    await record_entry(conn, request, key.org_id, "key.created", key.key_id, **detail)
    return NewApiKey(key, text.reveal())


def _require(key: ApiKey | None) -> ApiKey:
    if key is None:
        # Without the id: the caller may have passed the whole text of a key.
        raise UnknownKey("no key of this id in this org", field="key_id", fix="check the id and the org")
    return key


def _audit_detail(key: ApiKey, *fields: str) -> dict[str, Any]:
    return key.model_dump(mode="json", include={*fields})


def _checked_scopes(org_id: UUID, scopes: Iterable[Scope | str]) -> list[str]:
    """Return the scopes, each once. The system org has the scope `platform` and no other."""
    allowed = [scope.value for scope in Scope if (scope is Scope.PLATFORM) == (org_id == SYSTEM_ORG)]
    requested = [str(scope) for scope in scopes]
    invalid = [scope for scope in requested if scope not in allowed]
    if invalid or not requested:
        problem = f"{invalid[0]!r} is not a scope of this org" if invalid else "empty"
        raise ContractError(problem, field="scopes", fix=f"use some of {', '.join(allowed)}")
    return [scope for scope in allowed if scope in requested]


def _checked_environment(environment: str) -> str:
    if not _ENVIRONMENT.fullmatch(required_text("environment", environment)):
        raise ContractError(
            f"{environment!r} is not an environment",
            field="environment",
            fix="use up to 20 lower-case letters, as in live",
        )
    return environment
