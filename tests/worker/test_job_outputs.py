"""Partial results, artifacts and chunk failures are readable after the job has ended."""

from __future__ import annotations

import logging
import uuid

import pytest

from duly import Context, Duly, Fail, Status, SyncContext, errors
from tests.worker.working import ONE_ATTEMPT, run_until_ended, working


async def test_partial_results_of_a_failed_job_are_readable(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.half")
    async def half(ctx: Context) -> None:
        async for chunk in ctx.chunks(["north", "south"]):
            async with chunk:
                if chunk.item == "south":
                    raise Fail("no way")
                chunk.result = "x" * 50_000
        await ctx.partial("never")

    handle = await half.enqueue()
    assert (await run_until_ended(app, handle)).status is Status.FAILED
    [partial] = await handle.partials()
    assert (partial.result_seq, partial.chunk_key, len(partial.value)) == (1, "north", 50_000)


async def test_artifacts_are_listed_and_read_back(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.files")
    def files(ctx: SyncContext) -> None:
        ctx.artifact("b.csv", b"old", content_type="text/csv")
        ctx.artifact("b.csv", b"1;2", content_type="text/csv")
        ctx.artifact("a.bin", b"\0")

    handle = await files.enqueue()
    await run_until_ended(app, handle)
    artifacts = await handle.artifacts()
    assert [(file.name, file.size, file.content_type) for file in artifacts] == [
        ("a.bin", 1, "application/octet-stream"),
        ("b.csv", 3, "text/csv"),
    ]
    assert await handle.read("b.csv") == b"1;2"
    assert await handle.read(artifacts[0]) == b"\0"
    with pytest.raises(errors.NotFound):
        await handle.read("c.txt")


async def test_results_and_artifacts_are_unreadable_for_another_org(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.secret")
    async def secret(ctx: Context) -> None:
        await ctx.partial({"secret": 1})

    handle = await secret.enqueue()
    await run_until_ended(app, handle)
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    for read in (
        app.handle(handle.job_id, org_id=other).partials,
        app.handle(handle.job_id, org_id=other).artifacts,
    ):
        with pytest.raises(errors.UnknownJob):
            await read()


async def test_a_job_whose_chunks_all_failed_reports_each_failure(
    app: Duly, acting: uuid.UUID, caplog: pytest.LogCaptureFixture
) -> None:
    @app.job("test.all_bad", retry=ONE_ATTEMPT, allows_partial=True)
    async def all_bad(ctx: Context) -> None:
        async for chunk in ctx.chunks([1, 2]):
            async with chunk:
                raise ValueError(f"bad {chunk.item}" + "!" * 500)

    handle = await all_bad.enqueue()
    with caplog.at_level(logging.WARNING, "duly.worker"):
        job = await run_until_ended(app, handle)
    assert (job.outcome, job.error_message) == ("dead", "every chunk failed: bad 1" + "!" * 500)
    assert job.summary_counts == {"total": 2, "succeeded": 0, "failed": 2}
    assert [failure["chunk"] for failure in job.failure_summary] == ["1", "2"]
    letter = await app.dead_letters.get(acting, handle.job_id)
    assert letter.error_context["exceptions"][0]["class"] == "ValueError"
    assert f"job {handle.job_id} (test.all_bad), attempt 1: value_error: every chunk failed" in caplog.text
    assert "!" * 250 in caplog.text
    assert "!" * 300 not in caplog.text, "a log line contains only the beginning"


async def test_a_job_that_enters_none_of_its_chunks_fails(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.forgot")
    async def forgot(ctx: Context) -> None:
        async for chunk in ctx.chunks(["a", "b"]):
            chunk.result = 1

    job = await run_until_ended(app, await forgot.enqueue())
    assert (job.status, job.error_code) == (Status.FAILED, "contract.invalid")
    assert "chunks was entered" in (job.error_message or "")


async def test_a_worker_for_an_unknown_queue_does_not_start(app: Duly, acting: uuid.UUID) -> None:
    with pytest.raises(errors.UnknownQueue) as caught:
        async with working(app, queues=("q:default", "q:nope")):
            raise AssertionError("the worker started")
    assert caught.value.field == "queues"
