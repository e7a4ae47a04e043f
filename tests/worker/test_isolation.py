"""Handlers in isolated processes: the worker survives whatever they do to their process."""

from __future__ import annotations

import multiprocessing
import uuid

import psycopg

from duly import Duly
from tests.worker import isolated_jobs
from tests.worker.working import (
    WAIT_TIMEOUT,
    event_types,
    seconds,
    surviving_worker,
    working,
)


async def test_a_handler_that_exits_its_process_is_retried_and_becomes_a_dead_letter(
    isolated: Duly, acting: uuid.UUID
) -> None:
    async with surviving_worker(isolated, isolated=1):
        handle = await isolated_jobs.exit_process.enqueue(7)
        job = await handle.wait()
        async_job = await (await isolated_jobs.exit_process_async.enqueue()).wait()
        assert await (await isolated_jobs.get_pid.enqueue(1)).result() > 0, "the process is replaced"
    assert (job.outcome, job.attempt, job.error_code) == ("dead", 2, "process.died")
    assert job.error_message == "the handler's process ended with code 7"
    assert await event_types(handle) == ["queued", "started", "retried", "started", "deadlettered", "failed"]
    assert (async_job.outcome, async_job.error_code) == ("dead", "process.died")


async def test_a_process_serves_many_jobs(isolated: Duly, acting: uuid.UUID) -> None:
    async with working(isolated, isolated=1):
        handles = await isolated.enqueue_many([isolated_jobs.get_pid.call(n) for n in range(3)])
        pids = {await handle.result() for handle in handles}
    assert len(pids) == 1


async def test_a_process_that_died_while_idle_costs_no_attempt(isolated: Duly, acting: uuid.UUID) -> None:
    async with working(isolated, isolated=2):
        first = await (await isolated_jobs.get_pid.enqueue(1)).result()
        for process in multiprocessing.active_children():
            process.kill()
            process.join()
        handle = await isolated_jobs.get_pid.enqueue(2)
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.outcome, job.attempt, job.error_count) == ("succeeded", 1, 0)
    assert await handle.result() != first


async def test_processes_end_with_their_worker(isolated: Duly, acting: uuid.UUID) -> None:
    async with working(isolated, isolated=2):
        assert len(multiprocessing.active_children()) == 2
    assert multiprocessing.active_children() == []


async def test_the_children_of_an_isolated_job_go_to_the_database_of_its_worker(
    isolated: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    handles = [
        await isolated_jobs.enqueue_children.enqueue(),
        await isolated_jobs.enqueue_children_async.enqueue(),
    ]
    async with working(isolated, isolated=1) as worker:
        assert [(await handle.wait()).error_message for handle in handles] == [None, None]
        await worker.loop_events.wait("settled", 6)
    rows = sql.execute(
        "select parent_id, payload ->> 'kind' from duly.jobs "
        "where job_type = 'isolated.child' and status = 'completed' order by 2"
    ).fetchall()
    assert rows == [
        (handles[1].job_id, "async"),
        (handles[1].job_id, "async, in the transaction"),
        (handles[0].job_id, "sync"),
        (handles[0].job_id, "sync, in the transaction"),
    ]


async def test_a_handler_beyond_its_memory_limit_fails_and_its_process_continues(
    isolated: Duly, acting: uuid.UUID
) -> None:
    async with working(isolated, isolated=1):
        job = await (await isolated_jobs.allocate.enqueue(2_000)).wait()
        assert await (await isolated_jobs.allocate.enqueue(20)).result() == 20
    assert (job.outcome, job.error_code) == ("dead", "handler.memory")


async def test_an_isolated_handler_that_never_ends_is_killed_at_its_timeout(
    isolated: Duly, acting: uuid.UUID
) -> None:
    async with working(isolated, isolated=1):
        jobs = [await (await kind.enqueue()).wait() for kind in (isolated_jobs.hang, isolated_jobs.spin)]
        assert await (await isolated_jobs.get_pid.enqueue(1)).result() > 0
    assert [(job.outcome, job.error_code) for job in jobs] == [("dead", "run.timeout")] * 2


async def test_jobs_that_wait_for_a_process_are_requeued_on_stop(isolated: Duly, acting: uuid.UUID) -> None:
    handles = [await isolated_jobs.hang.options(idempotency_key=str(n)).enqueue() for n in range(2)]
    async with working(isolated, isolated=1, drain=seconds(0), stop_grace=seconds(0.2)) as worker:
        await worker.loop_events.wait("started", 2)
    assert worker.loop_events.counts["abandoned"] == 0
    for handle in handles:
        job = await handle.status()
        assert (job.status, job.attempt) == ("queued", 0)


async def test_any_base_exception_of_an_isolated_handler_becomes_an_outcome(
    isolated: Duly, acting: uuid.UUID
) -> None:
    async with working(isolated, isolated=1):
        pid = await (await isolated_jobs.get_pid.enqueue(1)).result()
        for error in isolated_jobs.BASE_EXCEPTIONS:
            for kind in (isolated_jobs.raise_sync, isolated_jobs.raise_async):
                job = await (await kind.enqueue(error)).wait()
                assert (job.outcome, job.error_code != "process.died") == ("dead", True)
        assert await (await isolated_jobs.get_pid.enqueue(2)).result() == pid, "the process lives on"


async def test_a_result_of_300_mb_from_a_process_fails_the_job(isolated: Duly, acting: uuid.UUID) -> None:
    async with working(isolated, isolated=1):
        job = await (await isolated_jobs.return_text.enqueue(300_000_000)).wait()
        unserializable = await (await isolated_jobs.return_object.enqueue()).wait()
        small = await isolated_jobs.return_text.enqueue(100_000)
        assert await small.result() == "x" * 100_000
    assert (job.outcome, job.attempt, job.error_code) == ("failed", 1, "contract.invalid")
    assert "300000002 bytes exceed the limit of 67108864" in (job.error_message or "")
    assert (unserializable.outcome, unserializable.error_code) == ("failed", "contract.invalid")
