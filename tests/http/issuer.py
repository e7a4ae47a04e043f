"""An issuer of tokens on this machine: discovery, keys, and tokens as they are asked for."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import FastAPI
from starlette.responses import JSONResponse, Response

from tests.http.conftest import served


class LocalIssuer:
    """Signs tokens with its key of now."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self.down = False
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


@asynccontextmanager
async def issuing() -> AsyncIterator[LocalIssuer]:
    """One that can be reached."""
    issuer, api = LocalIssuer(), FastAPI()

    @api.get("/.well-known/openid-configuration")
    async def discovery() -> Response:
        issuer.asked += 1
        if issuer.down:
            return Response(status_code=500)
        return JSONResponse({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"})

    @api.get("/keys")
    async def keys() -> Response:
        return JSONResponse(issuer.jwks())

    async with served(api) as address:
        issuer.url = address
        yield issuer
