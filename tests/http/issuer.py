"""A local OpenID Connect provider: discovery, keys, tokens, and sign-in without a form."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from tests.http.conftest import served

CLIENT = "duly-console"


class LocalIssuer:
    """Signs tokens with its current key, and signs in the user with the claims `person`."""

    def __init__(self) -> None:
        self.url = ""
        self.discovery_requests = 0
        self.down = False
        self.person: dict[str, Any] = {"sub": "u1"}
        """The claims of the user who signs in; None omits a claim."""
        self.secret: str | None = None
        """The client secret that the token endpoint requires, if any."""
        self.auth_methods = ["client_secret_basic"]
        self.error: dict[str, str] | None = None
        """The error parameters of the redirect, instead of a code."""
        self.authorizations: list[dict[str, str]] = []
        self.exchanges: list[dict[str, str]] = []
        self._codes: dict[str, dict[str, str]] = {}
        self.rotate("key-1")

    def rotate(self, name: str) -> None:
        """Sign with a new key from now on."""
        self._private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = name

    def token(self, **claims: Any) -> str:
        """Return a valid token, except for these claims; None omits a claim."""
        good = {"iss": self.url, "aud": "duly", "sub": "u1", "exp": time.time() + 60}
        claims_to_sign = {name: value for name, value in {**good, **claims}.items() if value is not None}
        return jwt.encode(claims_to_sign, self._private, algorithm="RS256", headers={"kid": self._name})

    def jwks(self) -> dict[str, Any]:
        """Return the public keys."""
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._private.public_key()))
        return {"keys": [{**public, "kid": self._name, "alg": "RS256", "use": "sig"}]}

    def discovery(self) -> dict[str, Any]:
        """Return the discovery document."""
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize?tenant=acme",
            "token_endpoint": f"{self.url}/token",
            "token_endpoint_auth_methods_supported": self.auth_methods,
        }

    def redirect(self, query: dict[str, str]) -> str:
        """Return the redirect of the authorization endpoint: with a code, or with an error."""
        expected = {"response_type": "code", "client_id": CLIENT, "code_challenge_method": "S256"}
        assert {name: query[name] for name in expected} == expected
        assert query["scope"].split()[0] == "openid"
        self.authorizations.append(query)
        parameters = self.error
        if parameters is None:
            parameters = {"code": secrets.token_urlsafe(16)}
            self._codes[parameters["code"]] = query
        return (
            f"{query['redirect_uri']}?{urlencode({**parameters, 'state': query['state'], 'iss': self.url})}"
        )

    def exchange(self, form: dict[str, str], authorization: str) -> str | None:
        """Exchange a code for an ID token; each code works once, for the right client and verifier."""
        self.exchanges.append(form)
        authorization_query = self._codes.pop(form.get("code", ""), None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        if (
            authorization_query is None
            or proof.decode().rstrip("=") != authorization_query["code_challenge"]
            or form["redirect_uri"] != authorization_query["redirect_uri"]
            or not self._is_client(form, authorization)
        ):
            return None
        return self.token(**{"aud": CLIENT, "nonce": authorization_query["nonce"], **self.person})

    def _is_client(self, form: dict[str, str], authorization: str) -> bool:
        if self.secret is None:
            return form["client_id"] == CLIENT and "client_secret" not in form and not authorization
        if "client_secret_basic" in self.auth_methods:
            expected = base64.b64encode(urlencode({CLIENT: self.secret}).replace("=", ":").encode()).decode()
            return authorization == f"Basic {expected}" and "client_secret" not in form
        return (form["client_id"], form["client_secret"]) == (CLIENT, self.secret)


@asynccontextmanager
async def issuing() -> AsyncIterator[LocalIssuer]:
    """Serve a local provider."""
    issuer, api = LocalIssuer(), FastAPI()

    @api.get("/.well-known/openid-configuration")
    async def discovery() -> Response:
        issuer.discovery_requests += 1
        return Response(status_code=500) if issuer.down else JSONResponse(issuer.discovery())

    @api.get("/keys")
    async def keys() -> Response:
        return JSONResponse(issuer.jwks())

    @api.get("/authorize")
    async def authorize(request: Request) -> Response:
        assert request.query_params["tenant"] == "acme"
        return RedirectResponse(issuer.redirect(dict(request.query_params)), 302)

    @api.post("/token")
    async def token(request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        id_token = issuer.exchange(form, request.headers.get("authorization", ""))
        if id_token is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"id_token": id_token, "access_token": "not-for-us", "token_type": "Bearer"})

    async with served(api) as address:
        issuer.url = address
        yield issuer
