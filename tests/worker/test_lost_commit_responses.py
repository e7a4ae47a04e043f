"""A commit whose response is lost may have happened or not: nothing is lost or done twice."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Actor, Context, Duly, SyncContext
from duly.testing import FreshDatabase
from tests.journeys.consistency import check_consistency
from tests.worker.proxy import Proxy
from tests.worker.working import RETRY_AT_ONCE, WAIT_TIMEOUT, event_types, seconds, working


@pytest.fixture
async def proxy(fresh: FreshDatabase) -> AsyncIterator[Proxy]:
    async with Proxy(fresh.url) as opened:
        yield opened


@pytest.fixture
async def app(proxy: Proxy, fresh: FreshDatabase, tmp_path: Path) -> AsyncIterator[Duly]:
    opened = Duly(
        database_url=proxy.url,
        database_direct_url=fresh.direct_url,
        blobs_url=str(tmp_path / "blobs"),
        maintenance=False,
    )
    yield opened
    await opened.close()


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_effects_happen_once_when_the_commit_response_is_lost(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, proxy: Proxy, kind: str
) -> None:
    sql.execute("create table effects (job_id uuid); grant insert on effects to public")
    write, ran = "insert into effects values (%s)", []

    @app.job("write.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> str:
        ran.append(ctx.attempt)
        async with ctx.transaction() as conn:
            await conn.execute(write, [ctx.job.job_id])
        return "done"

    @app.job("write.sync", retry=RETRY_AT_ONCE)
    def sync_handler(ctx: SyncContext) -> str:
        ran.append(ctx.attempt)
        with ctx.transaction() as conn:
            conn.execute(write, [ctx.job.job_id])
        return "done"

    handle = await (async_handler if kind == "async" else sync_handler).enqueue()
    proxy.drop_commit_response("insert into effects")
    async with working(app) as worker:
        await proxy.dropped.wait()
        assert await handle.result(WAIT_TIMEOUT) == "done"
        await worker.loop_events.wait("lost")
    assert ran == [1]
    assert sql.execute("select job_id from effects").fetchall() == [(handle.job_id,)]
    assert await event_types(handle) == ["queued", "started", "completed"]
    check_consistency(sql)


@pytest.mark.parametrize(
    ("limit", "statement"), [(50, "'job.completed', 'completed'"), (None, "insert into duly.job_ends")]
)
async def test_a_completion_is_written_once_when_the_commit_response_is_lost(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, proxy: Proxy, limit: int | None, statement: str
) -> None:
    @app.job("step.take")
    async def take(n: int) -> int:
        return n

    if limit is not None:  # jobs that it counts have a state
        await app.limits.set(None, "step.take", max_running=limit, actor=Actor.user("ops"), reason="why")
    handles = await app.enqueue_many([take.call(n) for n in range(5)])
    proxy.drop_commit_response(statement)
    async with working(app):
        await proxy.dropped.wait()
        assert [await handle.result(WAIT_TIMEOUT) for handle in handles] == list(range(5))
    for handle in handles:
        assert await event_types(handle) == ["queued", "started", "completed"]
    assert sql.execute("select count(*) from duly.claims").fetchone() == (0,)
    check_consistency(sql)


async def test_a_claim_whose_response_is_lost_is_returned_without_spending_attempts(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, proxy: Proxy
) -> None:
    ran: list[int] = []

    @app.job("step.take")
    async def take(n: int) -> int:
        ran.append(n)
        return n

    handles = await app.enqueue_many([take.call(n) for n in range(20)])
    proxy.drop_commit_response("insert into duly.claims")
    async with working(app, poll=seconds(0.05)):
        await proxy.dropped.wait()
        assert [await handle.result(WAIT_TIMEOUT) for handle in handles] == list(range(20))
    assert sorted(ran) == list(range(20)), "each ran once"
    for handle in handles:
        assert (await handle.status()).attempt == 1
        assert await event_types(handle) == ["queued", "started", "snoozed", "started", "completed"]
    assert sql.execute("select count(*) from duly.claims").fetchone() == (0,)
    check_consistency(sql)


async def test_a_chunk_is_stored_once_when_the_commit_response_is_lost(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, proxy: Proxy
) -> None:
    ledger: list[str] = []

    @app.job("read.pages", retry=RETRY_AT_ONCE)
    async def read(ctx: Context) -> dict[str, Any]:
        async for chunk in ctx.chunks(["a", "b", "c"]):
            async with chunk:
                ledger.append(chunk.key)
                if chunk.key == "b":
                    proxy.drop_commit_response("'job.partial'")
                chunk.result = chunk.key.upper()
        return await ctx.results()

    handle = await read.enqueue()
    async with working(app):
        assert await handle.result(WAIT_TIMEOUT) == {"a": "A", "b": "B", "c": "C"}
    assert proxy.dropped.is_set()
    assert ledger == ["a", "b", "c"]
    assert (await handle.status()).attempt == 2
    assert await event_types(handle) == [
        "queued", "started", "partial", "partial", "retried", "started", "partial", "completed"
    ]  # fmt: skip
    check_consistency(sql)
