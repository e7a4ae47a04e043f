"""The service of an application that includes documents, and callers with keys of their own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.http.application import create_app
from duly.http.options import HttpOptions
from tests.http.conftest import caller, key_of


@pytest.fixture
def options() -> HttpOptions:
    return HttpOptions(upload_max=100_000, body_max=20_000, requests_per_second=1e9, burst=10**9)


@pytest.fixture
def api(library: Duly, options: HttpOptions) -> FastAPI:
    return create_app(library, options)


@pytest.fixture
async def http(library: Duly, api: FastAPI, org: uuid.UUID) -> AsyncIterator[httpx.AsyncClient]:
    """An admin of the org."""
    async with caller(api, await key_of(library, org)) as client:
        yield client


@pytest.fixture
async def clerk_key(library: Duly, org: uuid.UUID) -> str:
    return await key_of(library, org, "jobs:read", "jobs:write")


@pytest.fixture
async def clerk(api: FastAPI, clerk_key: str) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody of the org who has no special rights."""
    async with caller(api, clerk_key) as client:
        yield client


@pytest.fixture
async def stranger(library: Duly, api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """An admin of another org."""
    other = uuid.uuid4()
    await library.create_org(other, "Other")
    async with caller(api, await key_of(library, other)) as client:
        yield client
