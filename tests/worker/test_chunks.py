"""Chunks: each result is stored when the chunk ends, and a finished chunk never runs again."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Cancel, Context, Duly, Fail, SyncContext
from tests.worker import isolated_jobs
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    TWO_ATTEMPTS,
    event_types,
    run_until_ended,
    working,
)

PAGES = ["a", "b", "c", "d"]
SNAPSHOTS = (
    "select result_kind, result_seq, chunk_key, result_payload from duly.job_results order by result_seq"
)


async def test_a_chunk_commits_with_its_event_its_snapshot_and_the_progress(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    @app.job("read.pages")
    async def read(ctx: Context, pages: list[str]) -> list[str]:
        async for chunk in ctx.chunks(pages):
            async with chunk:
                chunk.result = {"text": chunk.item.upper()}
            if chunk.key == "b":
                reached.set()
                await go_on.wait()
        return sorted(await ctx.results())

    handle = await read.enqueue(PAGES)
    async with working(app):
        await reached.wait()
        job = await handle.status()
        assert (job.status, job.outcome, job.progress_percent, job.partial_count) == (
            "partial",
            "pending",
            50,
            2,
        )
        assert sql.execute(SNAPSHOTS).fetchall() == [
            ("partial", 1, "a", {"text": "A"}),
            ("partial", 2, "b", {"text": "B"}),
        ]
        together = sql.execute(
            "select count(*) from duly.result_snapshots r join duly.event_log e using (org_id, job_id) "
            "where (e.payload ->> 'result_seq')::int = r.result_seq and e.commit_xid::xid = r.xmin "
            "and e.event_type = 'job.partial'"
        ).fetchone()
        assert together == (2,)
        assert sql.execute("select count(*) from duly.job_states s, duly.result_snapshots r "
                           "where s.xmin = r.xmin and r.result_seq = 2").fetchone() == (1,)  # fmt: skip
        go_on.set()
        assert await handle.result() == PAGES
    job = await handle.status()
    assert (job.status, job.progress_percent, job.partial_count) == ("completed", 100, 4)
    assert job.summary_counts == {"total": 4, "succeeded": 4}
    assert await event_types(handle) == ["queued", "started", *["partial"] * 4, "completed"]
    kinds = [row[:2] for row in sql.execute(SNAPSHOTS)]
    assert kinds == [*(("partial", n) for n in range(1, 5)), ("final", 5)], "one final snapshot, the last"


async def test_a_sync_handler_works_in_chunks(app: Duly, acting: uuid.UUID, sql: psycopg.Connection) -> None:
    @app.job("read.pages", allows_partial=True)
    def read(ctx: SyncContext, pages: list[str]) -> dict[str, Any]:
        for chunk in ctx.chunks(pages):
            with chunk:
                if chunk.item == "c":
                    raise ValueError("torn")
                chunk.result = chunk.item.upper()
        ctx.count(pages=4)
        ctx.checkpoint({"read": 4})
        ctx.partial("by the way")
        return {"results": ctx.results(), "checkpoint": ctx.checkpointed}

    handle = await read.enqueue(PAGES)
    job = await run_until_ended(app, handle)
    assert await handle.result() == {
        "results": {"a": "A", "b": "B", "d": "D"},
        "checkpoint": {"read": 4},
    }
    assert (job.outcome, job.partial_count) == ("partially_succeeded", 4)
    assert job.summary_counts == {"total": 4, "succeeded": 3, "failed": 1, "pages": 4}


async def test_a_retried_job_continues_after_its_last_finished_chunk(app: Duly, acting: uuid.UUID) -> None:
    ledger: list[str] = []

    @app.job("read.pages", retry=RETRY_AT_ONCE)
    async def read(ctx: Context, pages: list[str]) -> dict[str, Any]:
        async for chunk in ctx.chunks(pages):
            async with chunk:
                ledger.append(chunk.key)
                if chunk.item == "c" and ctx.attempt < 3:
                    raise ValueError("torn")
                chunk.result = ctx.attempt
        return await ctx.results()

    @app.job("read.sync", retry=RETRY_AT_ONCE)
    def sync_handler(ctx: SyncContext, pages: list[str]) -> dict[str, Any]:
        for chunk in ctx.chunks(pages):
            with chunk:
                ledger.append(chunk.key)
                if chunk.item == "c" and ctx.attempt < 3:
                    raise ValueError("torn")
                chunk.result = ctx.attempt
        return ctx.results()

    for kind in (read, sync_handler):
        ledger.clear()
        handle = await kind.enqueue(PAGES)
        job = await run_until_ended(app, handle)
        assert ledger == ["a", "b", "c", "c", "c", "d"]
        assert await handle.result() == {"a": 1, "b": 1, "c": 3, "d": 3}
        assert (job.attempt, job.partial_count, job.summary_counts) == (3, 4, {"total": 4, "succeeded": 4})


async def test_a_job_whose_process_was_killed_continues_after_its_last_finished_chunk(
    isolated: Duly, acting: uuid.UUID, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    handle = await isolated_jobs.process_chunks.enqueue(["a", "exit", "c"], str(ledger))
    job = await run_until_ended(isolated, handle, isolated=1)
    assert ledger.read_text().split() == ["a", "exit", "exit", "c"]
    assert await handle.result() == {"a": "A", "exit": "EXIT", "c": "C"}
    assert (job.attempt, job.partial_count, job.outcome) == (2, 3, "succeeded")


async def test_a_second_pass_over_the_same_items_skips_finished_chunks(app: Duly, acting: uuid.UUID) -> None:
    ledger: list[str] = []

    @app.job("read.pages", allows_partial=True)
    async def read(ctx: Context, pages: list[str]) -> dict[str, Any]:
        for _ in range(2):
            async for chunk in ctx.chunks(pages):
                async with chunk:
                    ledger.append(chunk.key)
                    if chunk.key == "b" and ledger.count("b") == 1:
                        raise ValueError("torn")
                    chunk.result = chunk.key
        return await ctx.results()

    handle = await read.enqueue(PAGES)
    job = await run_until_ended(app, handle)
    assert ledger == ["a", "b", "c", "d", "b"]
    assert job.summary_counts["total"] == job.summary_counts["succeeded"] == 4


async def test_the_chunks_of_several_loops_are_counted_together(app: Duly, acting: uuid.UUID) -> None:
    @app.job("read.pages", allows_partial=True, retry=ONE_ATTEMPT)
    async def read(ctx: Context) -> None:
        for part, broken in (("text", False), ("image", True)):
            async for chunk in ctx.chunks([1, 2], key=lambda n, part=part: f"{part}-{n}"):
                async with chunk:
                    if broken:
                        raise ValueError("torn")

    job = await run_until_ended(app, await read.enqueue())
    assert (job.outcome, job.summary_counts) == (
        "partially_succeeded",
        {"total": 4, "succeeded": 2, "failed": 2},
    )


@pytest.mark.parametrize("ending", ["failed", "canceled", "dead"])
async def test_partial_results_stay_readable_however_the_job_ends(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, ending: str
) -> None:
    signals: dict[str, Exception] = {
        "failed": Fail("no"),
        "canceled": Cancel("no"),
        "dead": ValueError("no"),
    }

    @app.job("read.pages", retry=ONE_ATTEMPT)
    async def read(ctx: Context) -> None:
        await ctx.partial({"page": 1}, percent=25)
        raise signals[ending]

    handle = await read.enqueue()
    job = await run_until_ended(app, handle)
    assert (job.outcome, job.progress_percent, job.partial_count) == (ending, 25, 1)
    assert sql.execute(SNAPSHOTS).fetchall() == [("partial", 1, None, {"page": 1})]
    async with app.tenant_session(acting) as conn:
        assert await (await conn.execute(SNAPSHOTS)).fetchall() == [("partial", 1, None, {"page": 1})]


async def test_failed_chunks_are_reported_when_the_job_may_succeed_partially(
    app: Duly, acting: uuid.UUID
) -> None:
    @app.job("read.pages", allows_partial=True)
    async def read(ctx: Context, pages: list[str]) -> int:
        async for chunk in ctx.chunks(pages):
            async with chunk:
                if chunk.item in "bd":
                    raise ValueError(f"page {chunk.item} is torn, ask postgresql://u:pw@db/x")
        return len(await ctx.results())

    handle = await read.enqueue(PAGES)
    job = await run_until_ended(app, handle)
    assert (job.status, job.outcome, job.progress_percent) == ("completed", "partially_succeeded", 100)
    assert job.summary_counts == {"total": 4, "succeeded": 2, "failed": 2}
    assert job.failure_summary == [
        {
            "chunk": page,
            "error_code": "value_error",
            "error_class": "ValueError",
            "error_message": f"page {page} is torn, ask postgresql://[redacted]@db/x",
        }
        for page in "bd"
    ]
    assert await handle.result() == 2


async def test_a_failed_chunk_fails_the_attempt_unless_partial_success_is_allowed(
    app: Duly, acting: uuid.UUID
) -> None:
    @app.job("read.pages", retry=ONE_ATTEMPT)
    async def read(ctx: Context, pages: list[str]) -> None:
        async for chunk in ctx.chunks(pages):
            async with chunk:
                raise ValueError("torn")

    job = await run_until_ended(app, await read.enqueue(PAGES))
    assert (job.outcome, job.error_message, job.failure_summary) == ("dead", "torn", [])


async def test_a_job_is_retried_when_all_its_chunks_failed(app: Duly, acting: uuid.UUID) -> None:
    tries = []

    @app.job("read.pages", allows_partial=True, retry=TWO_ATTEMPTS)
    async def read(ctx: Context, pages: list[str]) -> None:
        tries.append(ctx.attempt)
        async for chunk in ctx.chunks(pages):
            async with chunk:
                raise ConnectionError("down")

    job = await run_until_ended(app, await read.enqueue(PAGES))
    assert tries == [1, 2]
    assert (job.outcome, job.error_code) == ("dead", "connection_error")
    assert job.error_message == "every chunk failed: down"


async def test_a_signal_raised_in_a_chunk_applies_to_the_whole_job(app: Duly, acting: uuid.UUID) -> None:
    @app.job("read.pages", allows_partial=True)
    async def read(ctx: Context, pages: list[str]) -> None:
        async for chunk in ctx.chunks(pages):
            async with chunk:
                if chunk.item == "b":
                    raise Fail("no consent", blocked=True)

    job = await run_until_ended(app, await read.enqueue(PAGES))
    assert (job.outcome, job.partial_count, job.failure_summary) == ("blocked", 1, [])


@pytest.mark.parametrize(
    "items", [["a", "b", "a"], [1, "1"], [""], ["x" * 201], ["a\0b"], ["a\ud800b"]], ids=str
)
async def test_chunk_keys_must_be_unique_and_valid(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, items: list[Any]
) -> None:
    @app.job("read.pages", retry=RETRY_AT_ONCE, allows_partial=True)
    async def read(ctx: Context) -> None:
        async for chunk in ctx.chunks(items):
            async with chunk:
                chunk.result = 1

    job = await run_until_ended(app, await read.enqueue())
    assert (job.outcome, job.attempt, job.error_code) == ("failed", 1, "contract.invalid")
    assert sql.execute(SNAPSHOTS).fetchall() == []


async def test_a_key_function_names_chunks_whose_items_are_objects(app: Duly, acting: uuid.UUID) -> None:
    @app.job("read.pages")
    async def read(ctx: Context) -> dict[str, Any]:
        async for chunk in ctx.chunks([{"n": 1}, {"n": 2}], key=lambda item: item["n"]):
            async with chunk:
                chunk.result = chunk.item
        return await ctx.results()

    handle = await read.enqueue()
    await run_until_ended(app, handle)
    assert await handle.result() == {"1": {"n": 1}, "2": {"n": 2}}


async def test_large_chunk_results_are_stored_as_blobs(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    large = "x" * 50_000

    @app.job("read.pages")
    async def read(ctx: Context) -> dict[str, int]:
        async for chunk in ctx.chunks(["small", "large"]):
            async with chunk:
                chunk.result = large if chunk.item == "large" else "x"
        return {key: len(value) for key, value in (await ctx.results()).items()}

    handle = await read.enqueue()
    await run_until_ended(app, handle)
    assert await handle.result() == {"small": 1, "large": 50_000}
    rows = sql.execute(
        "select payload is null, payload_ref is null from duly.result_partials order by result_seq"
    ).fetchall()
    assert rows == [(False, True), (True, False)]


async def test_a_chunk_result_that_json_cannot_represent_fails_the_job(app: Duly, acting: uuid.UUID) -> None:
    @app.job("read.pages", retry=RETRY_AT_ONCE)
    async def read(ctx: Context) -> None:
        async for chunk in ctx.chunks(["a"]):
            async with chunk:
                chunk.result = float("inf")

    job = await run_until_ended(app, await read.enqueue())
    assert (job.outcome, job.attempt, job.error_code) == ("failed", 1, "contract.invalid")
