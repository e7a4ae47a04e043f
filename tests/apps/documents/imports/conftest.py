"""Each test of imports is tried with every provider."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from duly import Duly
from duly.apps.documents.imports.providers.remote import Provider
from tests.apps.documents.imports.importing import FAKES, Site, site_of


@pytest.fixture(params=list(FAKES))
def provider(request: pytest.FixtureRequest) -> Provider:
    found: Provider = request.param
    return found


@pytest.fixture
async def site(
    provider: Provider, app: Duly, sql: psycopg.Connection, acting: uuid.UUID, tmp_path: Path
) -> AsyncIterator[Site]:
    async with site_of(provider, app, sql, acting, tmp_path / "secrets") as made:
        yield made
