"""Concurrent enqueues share a statement, and a refused or canceled call does not affect the others."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, Job, context
from duly.core.errors import StoreUnavailable, UnknownProject
from duly.db.database import Database
from duly.jobs import store as job_store
from tests.worker.working import until


@pytest.fixture
def take(app: Duly) -> Job[[int], int]:
    @app.job("step.take")
    async def take(n: int) -> int:
        return n

    return take


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of jobs of each statement."""
    sizes: list[int] = []
    real = job_store.enqueue_and_commit

    async def recorded(database: Database, org: uuid.UUID, specs: Any, **options: Any) -> Any:
        sizes.append(len(specs))
        return await real(database, org, specs, **options)

    monkeypatch.setattr(job_store, "enqueue_and_commit", recorded)
    return sizes


async def test_concurrent_calls_share_few_statements_and_each_gets_its_own_handle(
    take: Job[[int], int], acting: uuid.UUID, batches: list[int], sql: psycopg.Connection
) -> None:
    handles = await asyncio.gather(*(take.enqueue(n) for n in range(40)))
    assert sum(batches) == 40
    assert len(batches) <= 3
    stored = dict(sql.execute("select job_id, (payload ->> 'n')::integer from duly.job_records").fetchall())
    assert [stored[handle.job_id] for handle in handles] == list(range(40))
    assert all(handle.created for handle in handles)


async def test_the_same_key_in_one_batch_is_one_job(take: Job[[int], int], acting: uuid.UUID) -> None:
    same = take.options(idempotency_key="k")
    handles = await asyncio.gather(*(same.enqueue(1) for _ in range(5)))
    assert len({handle.job_id for handle in handles}) == 1
    assert sorted(handle.created for handle in handles) == [False] * 4 + [True]


async def test_a_refused_job_of_a_batch_fails_alone(
    app: Duly, take: Job[[int], int], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    lost = take.options(project_id=uuid.uuid4())
    calls = [take.enqueue(1), lost.enqueue(2), take.enqueue(3)]
    first, second, third = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(second, UnknownProject)
    stored = {row[0] for row in sql.execute("select job_id from duly.job_records").fetchall()}
    assert stored == {getattr(first, "job_id", None), getattr(third, "job_id", None)}


async def test_orgs_do_not_share_a_statement(
    app: Duly, take: Job[[int], int], batches: list[int], sql: psycopg.Connection
) -> None:
    orgs = [uuid.uuid4() for _ in range(3)]
    for org in orgs:
        await app.create_org(org, "Acme")

    async def enqueue(org: uuid.UUID) -> None:
        with context(org_id=org, actor=Actor.user("u1")):
            await take.enqueue(1)

    await asyncio.gather(*(enqueue(org) for org in orgs))
    assert batches == [1, 1, 1]
    assert sql.execute("select count(distinct org_id) from duly.job_records").fetchone() == (3,)


async def test_a_canceled_caller_does_not_affect_others_of_its_batch(
    take: Job[[int], int], acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = asyncio.Event()
    real = job_store.enqueue_and_commit

    async def slow(*values: Any, **named: Any) -> Any:
        started.set()
        return await real(*values, **named)

    monkeypatch.setattr(job_store, "enqueue_and_commit", slow)
    calls = [asyncio.create_task(take.enqueue(n)) for n in range(3)]
    await started.wait()
    calls[0].cancel()
    canceled, *others = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(canceled, asyncio.CancelledError)
    assert len({handle.job_id for handle in others if not isinstance(handle, BaseException)}) == 2


async def test_every_caller_of_a_batch_gets_the_error_of_an_unavailable_database(
    take: Job[[int], int], acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: object, **__: object) -> Any:
        raise StoreUnavailable("away", fix="wait")

    monkeypatch.setattr(job_store, "enqueue_and_commit", unavailable)
    errors = await asyncio.gather(*(take.enqueue(n) for n in range(3)), return_exceptions=True)
    assert [type(error) for error in errors] == [StoreUnavailable] * 3


async def test_a_call_that_waits_for_a_locked_key_does_not_delay_others(
    app: Duly, take: Job[[int], int], acting: uuid.UUID
) -> None:
    """Not the holder either: it may enqueue more before it commits."""
    same = take.options(idempotency_key="k")
    async with app.tenant_session(acting) as conn:
        first = await same.options(conn=conn).enqueue(1)
        second = asyncio.create_task(same.enqueue(1))
        other = await take.enqueue(2)
        assert other.created
        assert not second.done()
    assert (await second).job_id == first.job_id


async def test_a_call_that_times_out_on_a_locked_key_writes_nothing(
    app: Duly, take: Job[[int], int], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    same = take.options(idempotency_key="k")
    async with app.tenant_session(acting) as conn:
        await same.options(conn=conn).enqueue(1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await same.enqueue(1)
        await app.close()
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (1,)


async def test_a_canceled_caller_does_not_affect_those_that_arrive_during_its_write(
    app: Duly, take: Job[[int], int], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    same = take.options(idempotency_key="k")
    async with app.tenant_session(acting) as conn:
        await same.options(conn=conn).enqueue(1)
        first = asyncio.create_task(same.enqueue(1))
        await until(sql, "select exists (select from pg_locks where not granted)")
        others = asyncio.gather(*(take.enqueue(n) for n in (2, 3)))
        asyncio.get_running_loop().call_later(0.01, first.cancel)
        handles = await others
        await asyncio.wait([first])
    assert first.cancelled()
    assert all(handle.created for handle in handles)
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (3,)


async def test_closing_waits_for_a_lone_enqueue(
    app: Duly, take: Job[[int], int], acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, released = asyncio.Event(), asyncio.Event()
    real = job_store.enqueue_and_commit

    async def slow(*values: Any, **named: Any) -> Any:
        started.set()
        await released.wait()
        return await real(*values, **named)

    monkeypatch.setattr(job_store, "enqueue_and_commit", slow)
    enqueue = asyncio.create_task(take.enqueue(1))
    await started.wait()
    asyncio.get_running_loop().call_later(0.1, released.set)
    await app.close()
    assert (await enqueue).created


async def test_callers_that_enqueue_again_at_once_stay_together(
    take: Job[[int], int], acting: uuid.UUID, batches: list[int]
) -> None:
    async def enqueue_often() -> None:
        for n in range(5):
            await take.enqueue(n)

    await asyncio.gather(*(enqueue_often() for _ in range(10)))
    assert batches == [10] * 5
