"""JSON Web Tokens: of issuers we were told to trust, with keys that are fetched and kept for a while."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import jwt

from duly.control.keys import unknown_credential
from duly.http.provider import NOT_RIGHT, Provider

_LEEWAY = 30


@dataclass(frozen=True, slots=True)
class Issuer:
    """Somebody whose tokens are believed."""

    issuer: str
    """Exactly as in `iss`; its keys are found by OpenID discovery."""
    audience: str
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    """Pinned: what a token says of itself is not asked."""
    org_claim: str = "org_id"
    platform_claim: str | None = None
    """A claim that is true for those who look after the installation; nobody does, without it."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """What we are to the issuer, so that people can log in there and come back."""

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    """If it gave us one; else the proof of the code alone counts, which is always asked for."""
    label: str = "SSO"
    """What people know it by."""
    scopes: str = "openid"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token that is believed says; without an org, that they look after the installation."""

    user_id: str
    org_id: UUID | None
    expires_at: datetime


class Tokens:
    """Believes tokens of some issuers."""

    def __init__(self, issuers: tuple[Issuer, ...]) -> None:
        self._issuers = {issuer.issuer: (issuer, Provider(issuer.issuer)) for issuer in issuers}

    @property
    def providers(self) -> list[Provider]:
        """The issuers, to be asked for more than tokens."""
        return [provider for _, provider in self._issuers.values()]

    async def believe(self, token: str) -> Claims:
        """What the token says, if it is of an issuer we trust, for us, and not over."""
        return await self._believed(token)

    async def believe_log_in(self, token: str, client_id: str, nonce: str) -> Claims:
        """The same of an id token, which is for the client, and for one log-in only."""
        return await self._believed(token, client_id, nonce)

    async def _believed(self, token: str, client_id: str | None = None, nonce: str | None = None) -> Claims:
        try:
            header = jwt.get_unverified_header(token)
            said = jwt.decode(token, options={"verify_signature": False})
            issuer, provider = self._issuers[said["iss"]]
            claims = jwt.decode(
                token,
                await provider.key(str(header.get("kid", ""))),
                algorithms=list(issuer.algorithms),
                audience=client_id or issuer.audience,
                issuer=issuer.issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            if client_id is not None:
                _check_log_in(claims, client_id, nonce or "")
            return _claims(issuer, claims)
        except (jwt.PyJWTError, OverflowError, *NOT_RIGHT):
            raise unknown_credential() from None


def _check_log_in(claims: dict[str, Any], client_id: str, nonce: str) -> None:
    """Raise unless it answers what we asked, and was given to us."""
    if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
        raise ValueError("of another log-in")
    if claims.get("azp", client_id) != client_id:
        raise ValueError("given to somebody else")


def _claims(issuer: Issuer, claims: dict[str, Any]) -> Claims:
    ends = datetime.fromtimestamp(claims["exp"], UTC)
    if issuer.platform_claim is not None and claims.get(issuer.platform_claim) is True:
        return Claims(str(claims["sub"]), None, ends)
    return Claims(str(claims["sub"]), UUID(str(claims[issuer.org_claim])), ends)
