"""Fixtures of worker tests: isolated and blocking job types, a claimer, the effects of handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Duly, Settings
from duly.core.policy import QUEUES
from duly.db.clock import Clock
from duly.db.database import Database
from duly.testing import FreshDatabase
from duly.worker.claim import Claimer
from tests.worker import isolated_jobs
from tests.worker.blocking_jobs import BlockingJobs
from tests.worker.effects import CREATE


@pytest.fixture
async def isolated(fresh: FreshDatabase, tmp_path: Path) -> AsyncIterator[Duly]:
    """The application with the database URL, which its processes get from the worker."""
    app = isolated_jobs.app
    app.settings = Settings.load(
        database_url=fresh.url,
        database_direct_url=fresh.direct_url if fresh.url != fresh.direct_url else None,
        blobs_url=str(tmp_path / "blobs"),
        maintenance=False,
    )
    vars(app).pop("database_urls", None)
    yield app
    await app.close()


@pytest.fixture
def effects(sql: psycopg.Connection) -> Callable[[], list[Any]]:
    """Return a function that reads the committed effects of the handlers."""
    sql.execute(CREATE)
    return lambda: sql.execute("select job_id, attempt from effects").fetchall()


@pytest.fixture
def blocking(app: Duly) -> BlockingJobs:
    """Job types whose handlers wait until the test lets them go."""
    return BlockingJobs(app)


@pytest.fixture
def claimer(database: Database) -> Claimer:
    """Return a claimer of all queues, without a worker."""
    return Claimer(database, QUEUES[:-1], Clock())
