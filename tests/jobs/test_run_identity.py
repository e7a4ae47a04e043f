"""Run identities: at most one active job per org, type and identity."""

from __future__ import annotations

import asyncio
import uuid

import psycopg

from duly import Duly
from duly.jobs.job import Call
from tests.jobs.test_enqueue import declare, declare_again


async def test_one_active_run_per_identity(app: Duly, acting: uuid.UUID) -> None:
    sync = declare(app)
    first = await sync.options(run_identity=["inventory", 7]).enqueue("DE")
    second = await sync.options(run_identity=["inventory", 7]).enqueue("FR")
    other = await sync.options(run_identity=["inventory", 8]).enqueue("IT")
    assert second.job_id == first.job_id != other.job_id
    assert (await declare_again(sync).enqueue("FR")).job_id == first.job_id, (
        "its key points to the run it joined"
    )
    await first.cancel("no longer needed")
    third = await sync.options(run_identity=["inventory", 7], idempotency_key="again").enqueue("DE")
    assert third.created


async def test_a_batch_with_one_identity_twice_runs_once(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app).options(run_identity="nightly")
    handles = await app.enqueue_many([build.call("DE"), build.call("FR")])
    assert [h.created for h in handles] == [True, False]
    assert handles[0].job_id == handles[1].job_id


async def test_concurrent_enqueues_of_one_identity_create_one_run(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    build = declare(app).options(run_identity="nightly")
    handles = await asyncio.gather(*(build.enqueue(f"R{n}") for n in range(30)))
    assert len({h.job_id for h in handles}) == 1
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (1,)


async def test_a_duplicate_within_the_batch_reserves_no_run(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app)

    def call(key: str, run: str, region: str) -> Call[dict[str, int]]:
        return build.options(idempotency_key=key, run_identity=run).call(region)

    calls = [call("K", "Y", "A"), call("K", "X", "B"), call("K3", "X", "C")]
    handles = await app.enqueue_many(calls)
    assert [h.created for h in handles] == [True, False, True]
    assert handles[1].job_id == handles[0].job_id != handles[2].job_id
    assert not (
        await declare_again(build).options(run_identity="X", idempotency_key="K4").enqueue("D")
    ).created


async def test_a_run_identity_is_checked_without_scanning_other_jobs(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    build = declare(app)

    def scanned() -> int:
        sql.execute("select pg_stat_force_next_flush()")
        query = "select sum(seq_tup_read) from pg_stat_user_tables where relname like 'job_records%'"
        return sql.execute(query).fetchone()[0]

    for part in range(3):
        calls = [build.options(run_identity=[part, n]).call(f"{part}-{n}") for n in range(500)]
        assert all(h.created for h in await asyncio.to_thread(app.enqueue_many_sync, calls, conn=sql))
    assert scanned() == 0
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (1500,)
    assert scanned() == 1500, "a sequential scan would be counted"
    await asyncio.to_thread(app.close_sync)
