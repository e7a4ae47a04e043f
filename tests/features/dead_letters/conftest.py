"""An application with one job type, and a function that creates dead letters."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from duly import Duly
from duly.core.outcome import ErrorInfo, Retried
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from tests.features.dead_letters.dead_jobs import BOOM, Bury, end_one


@pytest.fixture
def dead_letters(app: Duly) -> DeadLetters:
    return DeadLetters(app)


@pytest.fixture
def send(app: Duly) -> Any:
    @app.job("mail.send")
    async def send(to: str, size: int = 1) -> int:
        return size

    return send


@pytest.fixture
def bury(send: Any, database: Database, acting: uuid.UUID) -> Bury:
    """Return a function that enqueues a job and lets it die."""

    async def bury(to: str = "a", *, error: ErrorInfo = BOOM, **options: Any) -> uuid.UUID:
        handle = await send.options(**options).enqueue(to)
        assert await end_one(database, Retried(error)) == handle.job_id
        return handle.job_id

    return bury
