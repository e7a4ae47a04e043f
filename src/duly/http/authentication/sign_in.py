"""Sign in at the identity provider: the authorization code flow with PKCE, a state and a nonce.

The service stores nothing. The browser holds one secret for a few minutes, in a cookie that no script can
read; state, nonce and verifier are derived from it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from typing import NamedTuple, Self
from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import Response

from duly.http.authentication import cookies
from duly.http.authentication.identity_provider import IdentityProvider
from duly.http.authentication.jwt import OidcClient, TokenClaims, TokenVerifier

_LIFETIME_SECONDS = 600
_COOKIE_SUFFIX = "-way"
_COOKIE_VALUE = re.compile(r"([A-Za-z0-9_-]{43})\.(\d{1,12})\.([A-Za-z0-9_-]{0,4000})")


class SignInAttempt(NamedTuple):
    """A sign-in between the redirect to the provider and the return, as the cookie holds it."""

    secret: str
    started_at: int
    next_path: str
    """Where the user goes afterwards."""

    @classmethod
    def start(cls, next_path: str) -> Self:
        """Return a new attempt."""
        return cls(secrets.token_urlsafe(32), int(time.time()), next_path)

    @classmethod
    def from_request(cls, request: Request, *, secure: bool) -> Self | None:
        """Return the attempt of the browser, unless it is too old."""
        name = cookies.cookie_name(request, secure=secure)
        match = _COOKIE_VALUE.fullmatch(request.cookies.get(f"{name}{_COOKIE_SUFFIX}", "")) if name else None
        if match is None or not -_LIFETIME_SECONDS <= int(match[2]) - int(time.time()) <= 0:
            return None
        try:
            next_path = base64.urlsafe_b64decode(match[3] + "=" * (-len(match[3]) % 4)).decode()
        except ValueError:
            return None
        return cls(match[1], int(match[2]), next_path)

    def save(self, response: Response, request: Request, *, secure: bool) -> None:
        """Set the cookie of the attempt."""
        name = cookies.cookie_name(request, secure=secure)
        if name is None:
            raise cookies.https_required()
        next_path = base64.urlsafe_b64encode(self.next_path.encode()).decode().rstrip("=")
        response.set_cookie(
            f"{name}{_COOKIE_SUFFIX}",
            f"{self.secret}.{self.started_at}.{next_path}",
            max_age=_LIFETIME_SECONDS,
            secure=name == cookies.SECURE,
            httponly=True,
            samesite="lax",
        )

    @property
    def state(self) -> str:
        """Returns with the code: proves that this browser started the sign-in."""
        return self._derive("state")

    @property
    def nonce(self) -> str:
        """Returns in the id token: proves that the token was issued for this sign-in."""
        return self._derive("nonce")

    @property
    def verifier(self) -> str:
        """Sent with the code (PKCE): proves that the code reached the client that asked for it."""
        return self._derive("verifier")

    def _derive(self, purpose: str) -> str:
        message = f"{purpose} {self.started_at} {self.next_path}".encode()
        return _base64url(hmac.new(self.secret.encode(), message, hashlib.sha256).digest())


def clear_attempt(response: Response, request: Request, *, secure: bool) -> None:
    """Delete the cookie of the attempt: each is used once."""
    name = cookies.cookie_name(request, secure=secure) or cookies.SECURE
    response.delete_cookie(
        f"{name}{_COOKIE_SUFFIX}", secure=name == cookies.SECURE, httponly=True, samesite="lax"
    )


class SignInFlow:
    """The authorization code flow at one provider."""

    def __init__(self, tokens: TokenVerifier, client: OidcClient) -> None:
        self._tokens = tokens
        self._client = client
        self._provider: IdentityProvider = tokens.providers[0]

    async def authorization_url(self, attempt: SignInAttempt, redirect_uri: str) -> str:
        """Return the URL at which the user signs in."""
        url = (await self._provider.endpoints()).authorize
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._client.client_id,
                "redirect_uri": redirect_uri,
                "scope": self._client.scopes,
                "state": attempt.state,
                "nonce": attempt.nonce,
                "code_challenge": _base64url(hashlib.sha256(attempt.verifier.encode()).digest()),
                "code_challenge_method": "S256",
            }
        )
        return f"{url}{'&' if '?' in url else '?'}{query}"

    def matches(self, attempt: SignInAttempt | None, request: Request) -> bool:
        """Return whether the provider's redirect belongs to the attempt of this browser."""
        params = request.query_params
        return (
            attempt is not None
            and hmac.compare_digest(attempt.state.encode(), params.get("state", "").encode())
            and params.get("iss", self._provider.issuer) == self._provider.issuer
        )

    async def claims(self, attempt: SignInAttempt, code: str, redirect_uri: str) -> TokenClaims:
        """Exchange the code for an id token, and return its verified claims."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
        }
        token = await self._provider.exchange(form, (self._client.client_id, self._client.client_secret))
        return await self._tokens.verify_id_token(token, self._client.client_id, attempt.nonce)


def _base64url(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
