"""Erase the results of all jobs about a subject; the jobs stay."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from duly import Actor, Context, Duly, errors
from tests.worker.working import run_until_ended

ANNA = Actor.operator("anna")


async def test_erasing_a_subject_deletes_snapshots_and_files_of_its_ended_jobs_only(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("step.take", subject=lambda payload, actor: f"customer:{payload['n'] % 2}")
    async def take(ctx: Context, n: int) -> str:
        await ctx.partial({"n": n, "text": "x" * 50_000})
        await ctx.artifact("a.txt", b"text of the customer")
        return "done"

    handles = [await take.enqueue(n) for n in (1, 2, 3)]
    for handle in handles:
        await run_until_ended(app, handle)
    waiting = await take.enqueue(5)
    assert (await waiting.status()).subject_id == "customer:1"

    assert await app.results.erase(acting, "customer:1", actor=ANNA, reason="asked for") == (4, 2)
    assert [len(await handle.partials()) for handle in handles] == [0, 1, 0]
    assert (await handles[0].status()).status == "completed"
    with pytest.raises(errors.UnknownResult):
        await app.results.get(acting, (await handles[0].status()).result_id)
    assert sql.execute("select count(*) from duly.released_blobs").fetchone() == (2,)
    assert sql.execute("select count(*) from duly.artifacts where expires_at <= now()").fetchone() == (2,)
    assert await app.results.erase(acting, "customer:1", actor=ANNA) == (0, 0)
    [entry] = (await app.audit.list(acting, action="result.erased")).entries
    assert (entry.target_id, entry.reason, entry.detail) == (
        "customer:1",
        "asked for",
        {"snapshots": 4, "files": 2},
    )
    assert await app.results.erase(uuid.uuid4(), "customer:0", actor=ANNA) == (0, 0), (
        "another org's are not ours"
    )
