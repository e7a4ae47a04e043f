"""An identity provider on this machine: discovery, keys, tokens, and a door for people."""

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
    """Signs tokens with its key of now, and lets in whoever it is told to."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self.down = False
        self.person: dict[str, Any] = {"sub": "u1"}
        """Who comes to the door: claims of their token; None leaves one out."""
        self.secret: str | None = None
        """What the client must show, if anything, and how."""
        self.ways = ["client_secret_basic"]
        self.refuses: dict[str, str] | None = None
        """What it says instead of letting anybody in."""
        self.visits: list[dict[str, str]] = []
        self.exchanges: list[dict[str, str]] = []
        self._codes: dict[str, dict[str, str]] = {}
        self.rotate("key-1")

    def rotate(self, name: str) -> None:
        """Sign with another key from now on."""
        self._private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = name

    def token(self, **claims: Any) -> str:
        """A token that is good, but for what is said otherwise; None leaves a claim out."""
        good = {"iss": self.url, "aud": "duly", "sub": "u1", "exp": time.time() + 60}
        said = {name: value for name, value in {**good, **claims}.items() if value is not None}
        return jwt.encode(said, self._private, algorithm="RS256", headers={"kid": self._name})

    def jwks(self) -> dict[str, Any]:
        """The public half."""
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._private.public_key()))
        return {"keys": [{**public, "kid": self._name, "alg": "RS256", "use": "sig"}]}

    def discovery(self) -> dict[str, Any]:
        """Where everything is."""
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize?tenant=acme",
            "token_endpoint": f"{self.url}/token",
            "token_endpoint_auth_methods_supported": self.ways,
        }

    def answer(self, asked: dict[str, str]) -> str:
        """Where the browser goes from the door: back, with a code or with a refusal."""
        wanted = {"response_type": "code", "client_id": CLIENT, "code_challenge_method": "S256"}
        assert {name: asked[name] for name in wanted} == wanted
        assert asked["scope"].split()[0] == "openid"
        self.visits.append(asked)
        said = self.refuses
        if said is None:
            said = {"code": secrets.token_urlsafe(16)}
            self._codes[said["code"]] = asked
        return f"{asked['redirect_uri']}?{urlencode({**said, 'state': asked['state'], 'iss': self.url})}"

    def exchange(self, form: dict[str, str], authorization: str) -> str | None:
        """The token for a code that is right in everything, and used once."""
        self.exchanges.append(form)
        asked = self._codes.pop(form.get("code", ""), None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        if (
            asked is None
            or proof.decode().rstrip("=") != asked["code_challenge"]
            or form["redirect_uri"] != asked["redirect_uri"]
            or not self._is_client(form, authorization)
        ):
            return None
        return self.token(**{"aud": CLIENT, "nonce": asked["nonce"], **self.person})

    def _is_client(self, form: dict[str, str], authorization: str) -> bool:
        if self.secret is None:
            return form["client_id"] == CLIENT and "client_secret" not in form and not authorization
        if "client_secret_basic" in self.ways:
            wanted = base64.b64encode(urlencode({CLIENT: self.secret}).replace("=", ":").encode()).decode()
            return authorization == f"Basic {wanted}" and "client_secret" not in form
        return (form["client_id"], form["client_secret"]) == (CLIENT, self.secret)


@asynccontextmanager
async def issuing() -> AsyncIterator[LocalIssuer]:
    """One that can be reached."""
    issuer, api = LocalIssuer(), FastAPI()

    @api.get("/.well-known/openid-configuration")
    async def discovery() -> Response:
        issuer.asked += 1
        return Response(status_code=500) if issuer.down else JSONResponse(issuer.discovery())

    @api.get("/keys")
    async def keys() -> Response:
        return JSONResponse(issuer.jwks())

    @api.get("/authorize")
    async def authorize(request: Request) -> Response:
        assert request.query_params["tenant"] == "acme"
        return RedirectResponse(issuer.answer(dict(request.query_params)), 302)

    @api.post("/token")
    async def token(request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        made = issuer.exchange(form, request.headers.get("authorization", ""))
        if made is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"id_token": made, "access_token": "not-for-us", "token_type": "Bearer"})

    async with served(api) as address:
        issuer.url = address
        yield issuer
