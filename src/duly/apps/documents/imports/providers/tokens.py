"""The OAuth tokens of a connector: read from its secret, and refreshed when the provider rejects them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from duly.apps.documents.imports.options import ProviderEndpoint
from duly.apps.documents.imports.providers.http_client import HttpClient
from duly.apps.documents.imports.providers.remote import (
    FileRefused,
    ProviderUnreachable,
    RemoteNotFound,
    RemoteUnauthorized,
)
from duly.apps.documents.imports.secrets import ReadOnlySecret, Secrets
from duly.apps.documents.schema import Connection, statement

_FIELDS = ("access_token", "refresh_token", "client_id", "client_secret")
Exchange = Callable[["OAuthGrant"], Awaitable["OAuthGrant"]]
"""Exchanges a refresh token for new tokens."""


@dataclass(frozen=True, slots=True)
class OAuthGrant:
    """The content of a connector's secret: JSON with these fields, or just an access token."""

    access_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    client_id: str = field(default="", repr=False)
    client_secret: str = field(default="", repr=False)

    @classmethod
    def parse(cls, secret: str) -> OAuthGrant:
        """Parse a secret."""
        values: Any = None
        with suppress(ValueError):
            values = json.loads(secret)
        grant = cls(secret)
        if isinstance(values, dict):
            grant = cls(**{name: str(values[name]) for name in _FIELDS if values.get(name)})
        if not _is_header_value(grant.access_token):
            raise RemoteUnauthorized("the connector's secret is not a token")
        return grant

    def to_secret(self) -> str:
        """Return the grant as a secret."""
        return json.dumps({name: getattr(self, name) for name in _FIELDS if getattr(self, name)})


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """The connector that a secret belongs to, and sessions to lock it."""

    org_id: UUID
    connector_id: UUID
    secret_ref: str
    session: Callable[[], AbstractAsyncContextManager[Connection]]


class Tokens:
    """The access token of a connector."""

    def __init__(self, owner: TokenOwner, secrets: Secrets, exchange: Exchange) -> None:
        self._owner = owner
        self._secrets = secrets
        self._exchange = exchange
        self._token: str | None = None
        self._rejected: set[str] = set()

    async def current(self) -> str:
        """See `TokenSource`."""
        if self._token is None:
            self._token = (await self._read()).access_token or await self.refresh("")
        return self._token

    async def refresh(self, rejected: str) -> str:
        """See `TokenSource`. The first import refreshes the token; concurrent ones find it in the secret."""
        owner = self._owner
        self._rejected.add(rejected)
        async with owner.session() as conn:
            values = {"org_id": owner.org_id, "connector_id": owner.connector_id}
            await conn.execute(statement("connectors/lock"), values)
            grant = await self._read()
            if grant.access_token in {"", *self._rejected}:
                grant = await self._exchange(grant)
                with suppress(ReadOnlySecret):  # each attempt refreshes its own token then
                    await self._secrets.put(owner.secret_ref, grant.to_secret())
        self._token = grant.access_token
        return self._token

    async def _read(self) -> OAuthGrant:
        return OAuthGrant.parse(await self._secrets.get(self._owner.secret_ref))


def exchange_at(http: HttpClient, endpoint: ProviderEndpoint) -> Exchange:
    """Return the exchange of OAuth 2; a new refresh token replaces the used one."""

    async def exchange(grant: OAuthGrant) -> OAuthGrant:
        if not grant.refresh_token:
            raise RemoteUnauthorized("the connector's token has expired, and has no refresh token")
        form = {
            "grant_type": "refresh_token",
            "refresh_token": grant.refresh_token,
            "client_id": grant.client_id or endpoint.client_id or "",
            "client_secret": grant.client_secret or endpoint.client_secret or "",
        }
        body = urlencode({name: value for name, value in form.items() if value}).encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        try:
            response = await http.json(None, "POST", endpoint.tokens, headers=headers, body=body)
        except (FileRefused, RemoteNotFound, RemoteUnauthorized):
            raise RemoteUnauthorized("the provider issues no new token: the access was revoked") from None
        return _merge(grant, response)

    return exchange


def _merge(grant: OAuthGrant, response: Any) -> OAuthGrant:
    token = response.get("access_token") if isinstance(response, dict) else None
    if not isinstance(token, str) or not token or not _is_header_value(token):
        raise ProviderUnreachable("the provider's response has no token")
    refresh_token = str(response.get("refresh_token") or grant.refresh_token)
    return replace(grant, access_token=token, refresh_token=refresh_token)


def _is_header_value(text: str) -> bool:
    """Return whether a token can be sent in a header: an error of the HTTP library would contain it."""
    return text.isascii() and text.isprintable()
