"""The service in this process, and callers with keys of their own."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from duly import Actor, Duly
from duly.features.api_keys.service import ApiKeys
from duly.http.application import create_app
from duly.http.options import HttpOptions

ALL = ("jobs:read", "jobs:write", "operate", "admin")
ANNA = Actor.operator("anna")


async def key_of(app: Duly, org: uuid.UUID, *scopes: str) -> str:
    """The text of a new key."""
    made = await ApiKeys(app).create(org, "tests", scopes or ALL, actor=ANNA, reason="a test")
    return made.text


def caller(api: FastAPI, key: str | None) -> httpx.AsyncClient:
    """Somebody who calls the service without a network; not for streams."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://duly.test", headers=headers)


@pytest.fixture
def options() -> HttpOptions:
    """What the service is told; a test may override it."""
    return HttpOptions()


@pytest.fixture
def api(app: Duly, options: HttpOptions) -> FastAPI:
    return create_app(app, options)


@pytest.fixture
async def key(app: Duly, org: uuid.UUID) -> str:
    return await key_of(app, org)


@pytest.fixture
async def http(api: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of the org who may do everything."""
    async with caller(api, key) as client:
        yield client


@pytest.fixture
async def stranger(app: Duly, api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of another org who may do everything there."""
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    async with caller(api, await key_of(app, other)) as client:
        yield client


@asynccontextmanager
async def served(api: FastAPI, buffer: int | None = None) -> AsyncIterator[str]:
    """The service on a port of this machine; its address. Each connection holds so many bytes, if said."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if buffer is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    server = uvicorn.Server(
        uvicorn.Config(api, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    )
    running = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        listener.close()
