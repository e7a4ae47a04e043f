"""The reaper after an outage: it waits for heartbeats before it declares workers lost."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Duly
from duly.maintenance.reaper import Reaper
from tests.worker.working import claim_and_vanish

GRACE = timedelta(seconds=7)


async def test_after_an_outage_the_reaper_waits_for_heartbeats(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("step.take")
    async def take() -> None: ...

    await claim_and_vanish(app, (await take.enqueue()).job_id)
    sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour'")
    reaper = Reaper(app, grace=GRACE)

    def lost() -> bool:
        row = sql.execute("select lost_at is not null from duly.workers").fetchone()
        return row == (True,)

    sql.execute("alter table duly.workers rename to hidden")
    with pytest.raises(psycopg.errors.UndefinedTable):
        await reaper.once()
    sql.execute("alter table duly.hidden rename to workers")
    assert await reaper.once() == GRACE
    assert not lost()
    await reaper.once()
    assert lost()


async def test_without_an_outage_the_reaper_does_not_wait(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("step.take")
    async def take() -> None: ...

    handle = await take.enqueue()
    await claim_and_vanish(app, handle.job_id)
    sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour'")
    await Reaper(app, grace=GRACE).once()
    assert (await handle.status()).status == "queued"
