"""Databases with the schema of documents, an application that includes them, and HTTP clients of it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.schema import SCHEMA
from duly.http.application import create_app
from duly.http.options import HttpOptions
from duly.testing import DatabaseCluster, FreshDatabase
from tests.apps.documents.stage import visitor
from tests.http.conftest import caller, key_of


@pytest.fixture
def fresh(cluster: DatabaseCluster) -> Iterator[FreshDatabase]:
    with cluster.fresh(schemas=[SCHEMA]) as made:
        yield made


@pytest.fixture
def library(app: Duly) -> Duly:
    app.include_documents()
    return app


@pytest.fixture
def anna(acting: uuid.UUID) -> DocumentPrincipal:
    """A member of the org without admin rights."""
    return visitor(acting, "anna")


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
    """A member of the org without admin rights."""
    async with caller(api, clerk_key) as client:
        yield client


@pytest.fixture
async def stranger(library: Duly, api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """An admin of another org."""
    other = uuid.uuid4()
    await library.create_org(other, "Other")
    async with caller(api, await key_of(library, other)) as client:
        yield client
