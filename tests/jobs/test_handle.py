"""Handles: read status and events of a job, wait for it, get its result, cancel it."""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel

from duly import Actor, Duly, Handle, context, errors
from duly.db.database import Database
from duly.db.statements import statement
from duly.worker import claim as claims

_WORKER = uuid.uuid4()


@dataclass
class Point:
    x: int
    y: int


class Report(BaseModel):
    region: str
    points: list[Point]


def declare(app: Duly, name: str = "report.build"):
    @app.job(name)
    async def build(region: str) -> Report: ...  # type: ignore[empty-body]

    return build


async def claim(database: Database, handle: Handle[Any]) -> None:
    """Claim the job as a worker does."""
    lane = {"lane": "q:default", "after_org": uuid.UUID(int=0), "slots": 1}
    async with database.engine() as conn:
        claimed = await claims.claim_jobs(conn, worker_id=_WORKER, claim_id=uuid.uuid4(), **lane)
    assert [job.job_id for job in claimed.jobs] == [handle.job_id]


async def settle(database: Database, handle: Handle[Any], status: str, outcome: str, **fields: Any) -> None:
    """Settle the job as a worker does."""
    transition = {
        "org_id": str(handle.org_id),
        "job_id": str(handle.job_id),
        "attempt": 1,
        "status": status,
        "outcome": outcome,
        "events": [f"job.{status}"],
        "actor_type": "worker",
        "actor_id": str(_WORKER),
        **fields,
    }
    async with database.engine() as conn:
        cursor = await conn.execute(
            statement("jobs/settle"), {"transitions": json.dumps([transition]), "claim_ids": []}
        )
        assert len(await cursor.fetchall()) == 1


async def finish(database: Database, handle: Handle[Any], result: Any, **fields: Any) -> None:
    await claim(database, handle)
    await settle(database, handle, "completed", "succeeded", result=result, **fields)


async def test_every_method_of_a_handle_raises_for_an_unknown_job(app: Duly, acting: uuid.UUID) -> None:
    handle = app.handle(uuid.uuid4())
    for call in (
        handle.status,
        handle.wait,
        handle.result,
        lambda: handle.cancel("enough"),
        handle.events().__anext__,
    ):
        with pytest.raises(errors.UnknownJob, match=f"no job {handle.job_id} in this org") as caught:
            await call()
        assert (caught.value.field, caught.value.fix) == ("job_id", "check the id and the org")


async def test_a_job_of_another_org_is_unknown(app: Duly, acting: uuid.UUID) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    theirs = await declare(app).options(org_id=other).enqueue("DE")
    handle = app.handle(theirs.job_id)
    for call in (handle.status, handle.result, lambda: handle.cancel("enough")):
        with pytest.raises(errors.UnknownJob, match=f"no job {theirs.job_id} in this org"):
            await call()
    assert (await app.handle(str(theirs.job_id), org_id=str(other)).status()).status == "queued"


async def test_a_handle_needs_an_org_and_an_id(app: Duly) -> None:
    with pytest.raises(errors.MissingField) as caught:
        app.handle(uuid.uuid4())
    assert caught.value.field == "org_id"
    with pytest.raises(errors.ContractError) as wrong:
        app.handle("seven", org_id=uuid.uuid4())
    assert wrong.value.field == "job_id"


async def test_canceling_a_queued_job_ends_it_at_once(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    handle = await declare(app).enqueue("DE")
    assert await handle.cancel("no longer needed") == "canceled"
    job = await handle.status()
    assert (job.status, job.outcome, job.attempt) == ("canceled", "canceled", 0)
    assert (job.canceled_by, job.cancel_reason) == ("user", "no longer needed")
    assert job.canceled_at == job.finished_at == job.cancel_requested_at is not None
    assert sql.execute("select status from duly.idempotency_keys").fetchone() == ("failed",)
    assert sql.execute("select count(*) from duly.ready").fetchone() == (0,)
    events = [e async for e in handle.events()]
    assert [(e.event_seq, e.event_type, e.actor_id) for e in events] == [
        (1, "job.queued", "u1"),
        (2, "job.canceled", "u1"),
    ]
    assert events[1].payload_json == {"canceled_by": "user", "cancel_reason": "no longer needed"}


async def test_canceling_twice_has_no_further_effect(app: Duly, acting: uuid.UUID) -> None:
    handle = await declare(app).enqueue("DE")
    await handle.cancel("first")
    before = await handle.status()
    assert await handle.cancel("second") == "canceled"
    assert await handle.status() == before


async def test_canceling_a_running_job_records_one_request(
    app: Duly, acting: uuid.UUID, database: Database
) -> None:
    handle = await declare(app).enqueue("DE")
    await claim(database, handle)
    assert [await handle.cancel("first"), await handle.cancel("second")] == ["running", "running"]
    job = await handle.status()
    assert (job.status, job.cancel_reason, job.canceled_at) == ("running", "first", None)
    await settle(database, handle, "canceled", "canceled", canceled_by="user", cancel_reason="first")
    assert [e.event_type async for e in handle.events()] == [
        "job.queued",
        "job.started",
        "job.cancel_requested",
        "job.canceled",
    ]


@pytest.mark.parametrize(
    ("actor", "by"),
    [(Actor.user("u2"), "user"), (Actor.api_key("k1"), "user"), (Actor.system("cron"), "system")],
)
async def test_a_cancellation_records_its_actor(app: Duly, acting: uuid.UUID, actor: Actor, by: str) -> None:
    handle = await declare(app).enqueue("DE")
    with context(actor=actor):
        await handle.cancel("enough")
    *_, last = [e async for e in handle.events()]
    assert ((await handle.status()).canceled_by, last.actor_type, last.actor_id) == (by, actor.type, actor.id)


async def test_a_cancellation_requires_an_actor(app: Duly, org: uuid.UUID) -> None:
    with pytest.raises(errors.MissingField) as caught:
        await app.handle(uuid.uuid4(), org_id=org).cancel("enough")
    assert caught.value.field == "actor"


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_an_ended_job_cannot_be_canceled(
    app: Duly, acting: uuid.UUID, database: Database, status: str
) -> None:
    handle = await declare(app).enqueue("DE")
    await claim(database, handle)
    outcome, error = ("succeeded", {}) if status == "completed" else ("failed", _ERROR)
    await settle(database, handle, status, outcome, **error)
    before = await handle.status()
    with pytest.raises(errors.AlreadyFinished, match=f"{handle.job_id} has already finished"):
        await handle.cancel("too late")
    assert await handle.status() == before


_ERROR = {"error_code": "upstream.gone", "error_message": "the printer is gone", "retryable": False}


async def test_a_result_has_the_declared_type(app: Duly, acting: uuid.UUID, database: Database) -> None:
    @app.job("count")
    def count(text: str) -> int: ...  # type: ignore[empty-body]

    @app.job("locate")
    def locate(name: str) -> Point: ...  # type: ignore[empty-body]

    @app.job("nothing")
    def nothing() -> None: ...

    number = await count.enqueue("abc")
    await finish(database, number, 3)
    point = await locate.enqueue("abc")
    await finish(database, point, {"x": 1, "y": 2})
    report = await declare(app).enqueue("DE")
    await finish(database, report, {"region": "DE", "points": [{"x": 1, "y": 2}]})
    empty = await nothing.enqueue()
    await finish(database, empty, None)
    assert await number.result() == 3
    assert await point.result() == Point(1, 2)
    assert await report.result() == Report(region="DE", points=[Point(1, 2)])
    assert await empty.result() is None


async def test_a_large_result_comes_from_the_blobs(app: Duly, acting: uuid.UUID, database: Database) -> None:
    handle = await declare(app).enqueue("DE")
    blobs = (await app.resources()).blobs
    ref = await blobs.put(acting, b'{"region": "K\xc3\xb6ln", "points": []}')
    await finish(database, handle, None, result_ref=str(ref))
    assert await handle.result() == Report(region="Köln", points=[])


async def test_a_failed_job_raises_its_own_error(app: Duly, acting: uuid.UUID, database: Database) -> None:
    handle = await declare(app).enqueue("DE")
    await claim(database, handle)
    await settle(database, handle, "failed", "failed", **_ERROR)
    with pytest.raises(errors.JobFailed) as caught:
        await handle.result()
    assert (caught.value.message, caught.value.field) == ("the printer is gone", "upstream.gone")
    assert (await handle.wait()).outcome == "failed"


async def test_a_canceled_job_raises_its_reason(app: Duly, acting: uuid.UUID) -> None:
    handle = await declare(app).enqueue("DE")
    await handle.cancel("no longer needed")
    with pytest.raises(errors.JobCanceled, match="no longer needed"):
        await handle.result()


async def test_a_result_deleted_by_retention_raises(
    app: Duly, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    handle = await declare(app).enqueue("DE")
    await finish(database, handle, {"region": "DE", "points": []})
    sql.execute("delete from duly.result_snapshots")
    with pytest.raises(errors.UnknownJob, match="retention deleted its result"):
        await handle.result()


@pytest.mark.parametrize("timeout", [0.05, timedelta(milliseconds=50), 0])
async def test_waiting_beyond_the_timeout_raises(
    app: Duly, acting: uuid.UUID, timeout: timedelta | float
) -> None:
    handle = await declare(app).enqueue("DE")
    for wait in (handle.wait, handle.result):
        with pytest.raises(errors.WaitTimeout, match=f"{handle.job_id} is still active") as caught:
            await wait(timeout)
        assert isinstance(caught.value, TimeoutError)
    assert (await handle.status()).status == "queued"


async def test_waiting_for_an_ended_job_returns_with_a_timeout_of_zero(app: Duly, acting: uuid.UUID) -> None:
    handle = await declare(app).enqueue("DE")
    await handle.cancel("enough")
    assert (await handle.wait(0)).status == "canceled"


async def test_events_are_yielded_once_in_order_until_the_terminal_event(
    app: Duly, acting: uuid.UUID, database: Database
) -> None:
    handle = await declare(app).enqueue("DE")
    received = []
    async with asyncio.timeout(30):
        async for event in handle.events():
            received.append((event.event_seq, event.event_type, event.status))
            if event.event_type == "job.queued":
                await claim(database, handle)
            elif event.event_type == "job.started":
                await settle(database, handle, "completed", "succeeded", result={})
    assert received == [
        (1, "job.queued", "queued"),
        (2, "job.started", "running"),
        (3, "job.completed", "completed"),
    ]
    assert [e.event_seq async for e in handle.events(after=2)] == [3]
    assert [e.event_seq async for e in handle.events(after=3)] == []


async def test_concurrent_readers_receive_the_same_events(
    app: Duly, acting: uuid.UUID, database: Database
) -> None:
    handle = await declare(app).enqueue("DE")
    started = asyncio.Barrier(4)

    async def read() -> list[int]:
        stream = handle.events()
        first = await anext(stream)
        await started.wait()
        return [first.event_seq, *[e.event_seq async for e in stream]]

    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(read()) for _ in range(3)]
        await started.wait()
        await finish(database, handle, {})
    assert [w.result() for w in watchers] == [[1, 2, 3]] * 3


async def test_events_are_read_across_pages(
    app: Duly, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    handle = await declare(app).enqueue("DE")
    await claim(database, handle)
    sql.execute(
        "insert into duly.event_log (org_id, job_id, event_seq, event_type, status, attempt, occurred_at, "
        "actor_type, actor_id) select %s, %s, n, 'job.progressed', 'running', 1, now(), 'worker', 'w' "
        "from generate_series(3, 1100) n",
        [acting, handle.job_id],
    )
    sql.execute("update duly.job_states set event_seq = 1100")
    await settle(database, handle, "completed", "succeeded", result={})
    assert [e.event_seq async for e in handle.events()] == list(range(1, 1102))
