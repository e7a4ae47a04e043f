"""The public API as a type checker sees it: read by mypy, never run."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type
from uuid import UUID

from pydantic import BaseModel

from duly import Context, Duly, Handle, JobSnapshot, Settings, Snooze, SyncContext, SyncHandle
from duly.jobs.job import Call

app = Duly()


class Report(BaseModel):
    rows: int


@app.job("typed.build")
async def build(region: str, year: int = 2026) -> Report:
    return Report(rows=year)


@app.job("typed.count")
def count(text: str) -> int:
    return len(text)


async def with_async() -> None:
    handle = await build.enqueue("DE", year=2025)
    assert_type(handle, Handle[Report])
    assert_type(await handle.result(), Report)
    assert_type(await handle.status(), JobSnapshot)
    assert_type(await build.options(priority=5).enqueue(region="DE"), Handle[Report])
    assert_type(await app.enqueue_many([count.call("a"), count.call("b")]), list[Handle[int]])
    assert_type(handle.job_id, UUID)


@app.job("typed.chunked")
async def chunked(ctx: Context, regions: list[str]) -> dict[str, int]:
    async for chunk in ctx.chunks(regions):
        assert_type(chunk.item, str)
    return {}


@app.job("typed.plain")
def plain(ctx: SyncContext, regions: list[str]) -> Report | Snooze:
    return Snooze(5) if ctx.draining else Report(rows=len(regions))


async def with_a_context() -> None:
    assert_type(await chunked.enqueue(["DE"]), Handle[dict[str, int]])
    assert_type(await chunked.enqueue(regions=["DE"]), Handle[dict[str, int]])
    mixed = await app.enqueue_many([chunked.call(["DE"]), count.call("a")])
    assert_type(mixed[0].job_id, UUID)
    await chunked.enqueue([7])  # type: ignore[list-item]
    await plain.enqueue()  # type: ignore[call-arg]


def without_async() -> None:
    assert_type(count.enqueue_sync("abc"), SyncHandle[int])
    assert_type(count.enqueue_sync("abc").result(timeout=1), int)
    assert_type(count.call("abc"), Call[int])


async def refused() -> None:
    await build.enqueue(7)  # type: ignore[arg-type]
    await build.enqueue("DE", yeer=2025)  # type: ignore[call-arg]
    await build.enqueue()  # type: ignore[call-arg]
    build.options(prioritty=5)  # type: ignore[call-arg]
    count.enqueue_sync(b"abc")  # type: ignore[arg-type]


def configured() -> None:
    Duly(database_url="postgresql://db/app", worker_slots=20, worker_lease=timedelta(seconds=30))
    Duly(worker_slotz=20)  # type: ignore[call-arg]
    Duly(worker_slots="many")  # type: ignore[arg-type]
    app.worker(slots=4, queues=("q:default",), drain=timedelta(0))
    app.worker(slotz=4)  # type: ignore[call-arg]
    app.worker(lease=30)  # type: ignore[arg-type]
    app.include_documents(unstructured_url=None)
    app.include_documents(unstructured_ulr=None)  # type: ignore[call-arg]
    Settings.load(worker_slots=20)
    Settings.load(worker_slotz=20)  # type: ignore[call-arg]
