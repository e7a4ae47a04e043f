"""As whom an import comes: the token of its connector, made anew when it has run out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from duly.apps.documents.imports.options import Place
from duly.apps.documents.imports.providers.remote import Missing, Refused, Unauthorized, Unreachable
from duly.apps.documents.imports.secrets import ReadOnlySecret, Secrets
from duly.apps.documents.schema import Connection, statement

if TYPE_CHECKING:
    from duly.apps.documents.imports.providers.http_client import Web

_FIELDS = ("access_token", "refresh_token", "client_id", "client_secret")
Exchange = Callable[["Grant"], Awaitable["Grant"]]
"""Gets a new token for an old one."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What the secret of a connector says: JSON with these names, or nothing but an access token."""

    access_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    client_id: str = field(default="", repr=False)
    client_secret: str = field(default="", repr=False)

    @classmethod
    def read(cls, secret: str) -> Grant:
        """Read the secret."""
        said: Any = None
        with suppress(ValueError):
            said = json.loads(secret)
        grant = cls(secret)
        if isinstance(said, dict):
            grant = cls(**{name: str(said[name]) for name in _FIELDS if said.get(name)})
        if not _is_token(grant.access_token):
            raise Unauthorized("the connector's secret is no token")
        return grant

    def written(self) -> str:
        """As it is kept."""
        return json.dumps({name: getattr(self, name) for name in _FIELDS if getattr(self, name)})


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose secret it is, and how to be alone with it."""

    org_id: UUID
    connector_id: UUID
    secret_ref: str
    session: Callable[[], AbstractAsyncContextManager[Connection]]


class Tokens:
    """The access token of a connector."""

    def __init__(self, owner: Owner, secrets: Secrets, exchange: Exchange) -> None:
        self._owner = owner
        self._secrets = secrets
        self._exchange = exchange
        self._token: str | None = None
        self._stale: set[str] = set()

    async def current(self) -> str:
        """The token at hand."""
        if self._token is None:
            kept = await self._kept()
            self._token = kept.access_token or await self.renewed("")
        return self._token

    async def renewed(self, stale: str) -> str:
        """Another one than this, which was not accepted: made by whoever comes first, found by the others."""
        owner = self._owner
        self._stale.add(stale)
        async with owner.session() as conn:
            values = {"org_id": owner.org_id, "connector_id": owner.connector_id}
            await conn.execute(statement("connectors/lock"), values)
            kept = await self._kept()
            if kept.access_token in {"", *self._stale}:
                kept = await self._exchange(kept)
                with suppress(ReadOnlySecret):  # then every attempt gets its own
                    await self._secrets.put(owner.secret_ref, kept.written())
        self._token = kept.access_token
        return self._token

    async def _kept(self) -> Grant:
        return Grant.read(await self._secrets.get(self._owner.secret_ref))


def exchange_at(web: Web, place: Place) -> Exchange:
    """The usual way of OAuth 2. A new refresh token takes the place of the one that was used."""

    async def exchange(grant: Grant) -> Grant:
        if not grant.refresh_token:
            raise Unauthorized("the connector's token has run out, and there is none to renew it")
        form = {
            "grant_type": "refresh_token",
            "refresh_token": grant.refresh_token,
            "client_id": grant.client_id or place.client_id or "",
            "client_secret": grant.client_secret or place.client_secret or "",
        }
        body = urlencode({name: value for name, value in form.items() if value}).encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        try:
            said = await web.json(None, "POST", place.tokens, headers=headers, body=body)
        except (Refused, Missing, Unauthorized):
            raise Unauthorized("the provider gives no new token: the access was taken back") from None
        return _merged(grant, said)

    return exchange


def _merged(grant: Grant, said: Any) -> Grant:
    fresh = said.get("access_token") if isinstance(said, dict) else None
    if not isinstance(fresh, str) or not fresh or not _is_token(fresh):
        raise Unreachable("the provider's answer holds no token")
    return replace(
        grant, access_token=fresh, refresh_token=str(said.get("refresh_token") or grant.refresh_token)
    )


def _is_token(text: str) -> bool:
    """Whether it can stand in a header: an error about one that cannot would show it."""
    return text.isascii() and text.isprintable()
