"""Any ended job can be run again as a new job."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest

from duly import context, errors
from duly.core.outcome import AttemptOutcome, Canceled, Completed, Failed
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from tests.features.dead_letters.dead_jobs import (
    BOOM,
    OPS,
    WHY,
    Bury,
    audited,
    dump_resolution_rows,
    end_one,
    history,
)


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (Failed(BOOM), "failed"),
        (Failed(BOOM, blocked=True), "blocked"),
        (Canceled("user", "enough"), "canceled"),
        (Completed(1), "succeeded"),
    ],
)
async def test_any_ended_job_can_be_run_again(
    dead_letters: DeadLetters,
    send: Any,
    acting: uuid.UUID,
    database: Database,
    sql: psycopg.Connection,
    ending: AttemptOutcome,
    outcome: str,
) -> None:
    old = await send.enqueue("a")
    await end_one(database, ending)
    assert (await old.status()).outcome == outcome
    with context(request_id="req-ops"):
        new = await dead_letters.rerun(acting, old.job_id, OPS, WHY)
    assert new.created
    assert (await new.status()).replay_of == old.job_id
    assert history(sql, new.job_id) == ["job.queued", "job.replayed"]
    assert audited(sql) == [
        ("job.rerun", "ops-1", "job", str(old.job_id), WHY, "req-ops", "req-1", str(new.job_id))
    ]


async def test_a_rerun_is_one_job_as_long_as_it_is_active(
    dead_letters: DeadLetters, send: Any, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    old = await send.options(run_identity="nightly").enqueue("a")
    await end_one(database, Failed(BOOM))
    handles = await asyncio.gather(*(dead_letters.rerun(acting, old.job_id, OPS, WHY) for _ in range(15)))
    assert len({handle.job_id for handle in handles}) == 1
    assert sum(handle.created for handle in handles) == 1
    assert len(audited(sql)) == 1
    await end_one(database, Failed(BOOM))
    again = await dead_letters.rerun(acting, old.job_id, OPS, WHY)
    assert again.created
    assert (await again.status()).idempotency_key == f"replay:{old.job_id}:2"


async def test_an_active_job_is_not_run_again(
    dead_letters: DeadLetters, send: Any, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    waiting = await send.enqueue("a")
    before = dump_resolution_rows(sql)
    with pytest.raises(errors.Conflict, match="is queued"):
        await dead_letters.rerun(acting, waiting.job_id, OPS, WHY)
    assert dump_resolution_rows(sql) == before


async def test_a_rerun_of_a_dead_job_is_its_replay(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    handle = await dead_letters.rerun(acting, old, OPS, WHY)
    assert (await dead_letters.get(acting, old)).successor_job_id == handle.job_id
    assert [row[0] for row in audited(sql)] == ["dead_letter.replayed"]


async def test_a_job_with_a_discarded_letter_can_be_rerun(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    await dead_letters.discard(acting, old, OPS, WHY)
    handle = await dead_letters.rerun(acting, old, OPS, "after all")
    assert handle.created
    assert (await dead_letters.get(acting, old)).resolution == "discarded"
    assert [row[0] for row in audited(sql)] == ["dead_letter.discarded", "job.rerun"]
