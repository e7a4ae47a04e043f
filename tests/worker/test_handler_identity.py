"""Handlers act for the org and the actor of their job in sessions, children, artifacts and logs."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

import psycopg
import pytest

from duly import (
    Actor,
    Context,
    Duly,
    Fail,
    SyncContext,
    context,
)
from duly.blobs import BlobRef
from tests.worker.working import RETRY_AT_ONCE, run_until_ended, settle_attempts


async def test_children_inherit_org_actor_and_correlation(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("child.do")
    async def child(kind: str) -> None: ...

    @app.job("parent.async")
    async def async_handler(ctx: Context) -> None:
        await ctx.enqueue(child.call("async"))
        await child.enqueue("its own way")

    @app.job("parent.sync")
    def sync_handler(ctx: SyncContext) -> None:
        ctx.enqueue(child.call("sync"))

    project = uuid.uuid4()
    await app.create_project(acting, project, "Berlin")
    with context(correlation_id="corr-7", project_id=project, actor=Actor.api_key("key-9")):
        parents = [await async_handler.enqueue(), await sync_handler.enqueue()]
    try:
        await settle_attempts(app, 5)
    finally:
        app.close_sync()
    rows = sql.execute(
        "select payload ->> 'kind', parent_id, org_id, project_id, actor_type, actor_id, correlation_id, "
        "request_id, status from duly.jobs where job_type = 'child.do' order by job_id"
    ).fetchall()
    assert sorted(row[:2] for row in rows) == [
        ("async", parents[0].job_id),
        ("its own way", parents[0].job_id),
        ("sync", parents[1].job_id),
    ]
    assert {row[2:] for row in rows} == {
        (acting, project, "api_key", "key-9", "corr-7", "req-1", "completed")
    }


@pytest.mark.parametrize("fails", [False, True])
async def test_children_enqueued_in_a_transaction_commit_or_roll_back_with_it(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, fails: bool
) -> None:
    @app.job("child.do")
    async def child(n: int) -> None: ...

    def end() -> None:
        if fails:
            raise Fail("not today")

    @app.job("parent.async")
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction():
            await ctx.enqueue(child.call(1))
            await ctx.enqueue_many([child.call(2), child.call(3)])
        end()

    @app.job("parent.sync")
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction():
            ctx.enqueue(child.call(4))
        end()

    parents = [await async_handler.enqueue(), await sync_handler.enqueue()]
    try:
        await settle_attempts(app, 2 if fails else 6)
    finally:
        app.close_sync()
    assert {(await parent.status()).status for parent in parents} == {"failed" if fails else "completed"}
    children = sql.execute(
        "select payload -> 'n', status from duly.jobs where job_type = 'child.do'"
    ).fetchall()
    assert sorted(children) == ([] if fails else [(n, "completed") for n in (1, 2, 3, 4)])


async def test_the_sessions_of_a_handler_see_only_its_org(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    counts = {}
    count = "select count(*), count(distinct org_id) from duly.jobs"

    @app.job("count.async")
    async def async_handler(ctx: Context) -> None:
        async with ctx.session() as conn:
            counts["session"] = await (await conn.execute(count)).fetchone()
        async with ctx.transaction() as conn:
            counts["transaction"] = await (await conn.execute(count)).fetchone()

    @app.job("count.sync")
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.session() as conn:
            counts["sync session"] = conn.execute(count).fetchone()
        with ctx.transaction() as conn:
            counts["sync transaction"] = conn.execute(count).fetchone()

    other = uuid.uuid4()
    await app.create_org(other, "Other")
    for org in (acting, other):
        await async_handler.options(org_id=org, idempotency_key="a").enqueue()
    await sync_handler.enqueue()
    await settle_attempts(app, 3, slots=1)
    assert counts["sync session"] == counts["sync transaction"] == (2, 1)
    assert counts["session"] == counts["transaction"]
    assert counts["session"] in [(2, 1), (1, 1)]


async def test_a_handler_cannot_write_for_another_org(app: Duly, acting: uuid.UUID) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")

    @app.job("child.do")
    async def child() -> None: ...

    @app.job("parent.do", retry=RETRY_AT_ONCE)
    async def parent(ctx: Context) -> None:
        async with ctx.transaction():
            await ctx.enqueue(child.options(org_id=other).call())

    job = await run_until_ended(app, await parent.enqueue())
    assert (job.status, job.error_code, job.attempt) == ("failed", "contract.invalid", 1)
    assert "another org" in (job.error_message or "")


async def test_an_artifact_is_stored_and_replaced_by_one_of_the_same_name(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("file.async")
    async def async_handler(ctx: Context) -> str:
        await ctx.artifact("report.csv", b"old", content_type="text/csv")
        artifact = await ctx.artifact("report.csv", b"a;b\n", content_type="text/csv", keep=timedelta(days=2))
        return artifact.blob_ref

    @app.job("file.sync")
    def sync_handler(ctx: SyncContext) -> str:
        return ctx.artifact("report.bin", b"\0").blob_ref

    handles = [await async_handler.enqueue(), await sync_handler.enqueue()]
    await settle_attempts(app, 2)
    rows = sql.execute(
        "select job_id, name, content_type, size, blob_ref, expires_at - created_at "
        "from duly.artifacts order by name"
    ).fetchall()
    assert rows == [
        (handles[1].job_id, "report.bin", "application/octet-stream", 1, await handles[1].result(), None),
        (handles[0].job_id, "report.csv", "text/csv", 4, await handles[0].result(), timedelta(days=2)),
    ]
    blobs = (await app.resources()).blobs
    assert await blobs.get(BlobRef.parse(rows[1][4]), org_id=acting) == b"a;b\n"


async def test_log_records_carry_the_ids_of_the_job(
    app: Duly, acting: uuid.UUID, caplog: pytest.LogCaptureFixture
) -> None:
    @app.job("log.async")
    async def async_handler(ctx: Context) -> None:
        ctx.log.warning("hello %s", "async")

    @app.job("log.sync")
    def sync_handler(ctx: SyncContext) -> None:
        ctx.log.warning("hello %s", "sync")

    handles = [await async_handler.enqueue(), await sync_handler.enqueue()]
    await settle_attempts(app, 2)
    lines = sorted(
        (line for line in caplog.records if line.message.startswith("hello")), key=lambda line: line.message
    )
    assert [line.message for line in lines] == ["hello async", "hello sync"]
    for handle, line in zip(handles, lines, strict=True):
        assert (
            vars(line).items()
            >= {
                "request_id": "req-1",
                "correlation_id": "req-1",
                "job_id": str(handle.job_id),
                "org_id": str(acting),
                "project_id": None,
            }.items()
        )
        assert line.levelno == logging.WARNING
        assert line.name == f"duly.job.{vars(line)['job_type']}"
