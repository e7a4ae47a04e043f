"""Verify JSON Web Tokens of the issuers that the installation trusts."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import jwt

from duly.features.api_keys.service import unknown_credential
from duly.http.authentication.identity_provider import MALFORMED, IdentityProvider

_LEEWAY_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Issuer:
    """An issuer whose tokens are accepted."""

    issuer: str
    """Exactly as in `iss`; its keys are found by OpenID discovery."""
    audience: str
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    """Pinned: the algorithm that a token names for itself does not count."""
    org_claim: str = "org_id"
    platform_claim: str | None = None
    """The claim that is true for operators of the installation; without it, a token never is one."""


@dataclass(frozen=True, slots=True)
class OidcClient:
    """Duly as a client of the issuer, so that users sign in there."""

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    """None for a public client; PKCE is used either way."""
    label: str = "SSO"
    """The name of the provider on the sign-in page."""
    scopes: str = "openid"


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The claims of a verified token; without an org it belongs to an operator of the installation."""

    user_id: str
    org_id: UUID | None
    expires_at: datetime


class TokenVerifier:
    """Verifies the tokens of some issuers."""

    def __init__(self, issuers: tuple[Issuer, ...]) -> None:
        self._issuers = {issuer.issuer: (issuer, IdentityProvider(issuer.issuer)) for issuer in issuers}

    @property
    def providers(self) -> list[IdentityProvider]:
        """The identity providers of the issuers."""
        return [provider for _, provider in self._issuers.values()]

    async def verify(self, token: str) -> TokenClaims:
        """Return the claims of an access token, or raise."""
        return await self._verify(token)

    async def verify_id_token(self, token: str, client_id: str, nonce: str) -> TokenClaims:
        """Return the claims of an id token that was issued to this client for this sign-in, or raise."""
        return await self._verify(token, client_id, nonce)

    async def _verify(
        self, token: str, client_id: str | None = None, nonce: str | None = None
    ) -> TokenClaims:
        try:
            header = jwt.get_unverified_header(token)
            unverified = jwt.decode(token, options={"verify_signature": False})
            issuer, provider = self._issuers[unverified["iss"]]
            claims = jwt.decode(
                token,
                await provider.key(str(header.get("kid", ""))),
                algorithms=list(issuer.algorithms),
                audience=client_id or issuer.audience,
                issuer=issuer.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            if client_id is not None:
                _check_id_token(claims, client_id, nonce or "")
            return _token_claims(issuer, claims)
        except (jwt.PyJWTError, OverflowError, *MALFORMED):
            raise unknown_credential() from None


def _check_id_token(claims: dict[str, Any], client_id: str, nonce: str) -> None:
    if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
        raise ValueError("the token belongs to another sign-in")
    if claims.get("azp", client_id) != client_id:
        raise ValueError("the token was issued to another client")


def _token_claims(issuer: Issuer, claims: dict[str, Any]) -> TokenClaims:
    expires_at = datetime.fromtimestamp(claims["exp"], UTC)
    if issuer.platform_claim is not None and claims.get(issuer.platform_claim) is True:
        return TokenClaims(str(claims["sub"]), None, expires_at)
    return TokenClaims(str(claims["sub"]), UUID(str(claims[issuer.org_claim])), expires_at)
