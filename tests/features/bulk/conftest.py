"""Fixtures: jobs of every status in one org, and a worker that runs only bulk actions."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from duly import Duly
from duly.core.outcome import AttemptOutcome, Completed, ErrorInfo, Failed, Retried
from duly.db.database import Database
from duly.features.bulk.service import Bulk
from tests.features.dead_letters.dead_jobs import BOOM, end_one
from tests.worker.blocking_jobs import running_workers

End = Callable[..., Awaitable[uuid.UUID]]
ENDINGS: dict[str, AttemptOutcome] = {
    "dead": Retried(BOOM),
    "failed": Failed(ErrorInfo("refused", "no")),
    "completed": Completed(),
}


@pytest.fixture
def bulk(app: Duly) -> Bulk:
    return Bulk(app)


@pytest.fixture
def mail(app: Duly) -> Any:
    @app.job("mail.send")
    async def send(to: str, region: str = "DE") -> str:
        return to

    return send


@pytest.fixture
def end(mail: Any, database: Database, acting: uuid.UUID) -> End:
    """Return a job with this ending."""

    async def end(how: str, **options: Any) -> uuid.UUID:
        handle = await mail.options(**options).enqueue(str(uuid.uuid4()))
        assert await end_one(database, ENDINGS[how]) == handle.job_id
        return uuid.UUID(str(handle.job_id))

    return end


@pytest.fixture
def maintained(app: Duly) -> Callable[[], AbstractAsyncContextManager[Any]]:
    """Run a worker that claims only bulk actions."""
    return lambda: running_workers(app, queues=("q:maintenance",))
