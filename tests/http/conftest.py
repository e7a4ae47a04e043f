"""Fixtures: the service in this process, and HTTP clients with API keys."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

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
    """Create an API key with these scopes; return its text."""
    created = await ApiKeys(app).create(org, "tests", scopes or ALL, actor=ANNA, reason="a test")
    return created.text


def caller(api: FastAPI, key: str | None = None, base_url: str = "http://duly.test") -> httpx.AsyncClient:
    """Return a client that calls the service without a network; it cannot read streams."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=base_url, headers=headers)


async def wait_until_ended(http: httpx.AsyncClient, url: str) -> dict[str, Any]:
    """Poll the status of a job until it has ended; return the last one."""
    while (job := (await http.get(url, headers={"prefer": "wait=30"})).json())["completed_at"] is None:
        pass
    return dict(job)


@pytest.fixture
def options() -> HttpOptions:
    """The options of the service; a test may override them."""
    return HttpOptions()


@pytest.fixture
def api(app: Duly, options: HttpOptions) -> FastAPI:
    return create_app(app, options)


@pytest.fixture
async def key(app: Duly, org: uuid.UUID) -> str:
    return await key_of(app, org)


@pytest.fixture
async def http(api: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the org with every scope."""
    async with caller(api, key) as client:
        yield client


@pytest.fixture
async def stranger(app: Duly, api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of another org with every scope."""
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    async with caller(api, await key_of(app, other)) as client:
        yield client


@asynccontextmanager
async def served(api: FastAPI, buffer: int | None = None) -> AsyncIterator[str]:
    """Serve on a local port; yield the URL. `buffer` limits the send buffer of each connection, in bytes."""
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
