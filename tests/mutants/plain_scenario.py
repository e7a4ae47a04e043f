"""A scenario of the plain path: a claim whose jobs end in every way that its fence must tell apart."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

from duly.worker import claim as claims
from duly.worker import settle_store as work
from duly.worker.claim import ClaimedJob
from tests.mutants.stage import Stage
from tests.worker.working import RETRY_AT_ONCE, lose_all_workers, seconds, working, yield_to_loop

JOBS = 12
_WORKER = uuid.UUID(int=7)
_LEAVE = "select duly.leave_plain_path(%s::uuid, %s::uuid)"


async def plain_path(stage: Stage) -> None:
    """Complete a part of a claim while one of its jobs leaves the plain path; then lose its worker."""

    @stage.app.job("plain.work", retry=RETRY_AT_ONCE)
    async def plain() -> None: ...

    handles = await stage.ask_many(plain, (), keys=[f"plain-{n}" for n in range(JOBS)])
    jobs = await _claim(stage)
    assert [job.is_plain for job in jobs] == [True] * JOBS
    stage.observe()
    database = (await stage.app.resources()).database
    async with database.engine() as conn:
        await conn.execute(_LEAVE, [jobs[0].org_id, jobs[0].job_id])
        finishing = asyncio.create_task(_complete(stage, jobs[:4]))
        while not finishing.done() and not _is_blocked(stage):
            await yield_to_loop()
    await finishing
    await stage.cancel(next(handle for handle in handles if handle.job_id == jobs[4].job_id))
    await _complete(stage, jobs[4:8])
    stage.observe()
    await lose_all_workers(stage.app, stage.sql)
    await _complete(stage, jobs[8:])
    stage.observe()
    async with working(stage.app, poll=seconds(0.02)) as worker:
        await stage.rest(worker)
    stage.observe()
    for handle in handles:
        await stage.read_stream(handle)
    await stage.read_feed_to_its_end()


async def _claim(stage: Stage) -> list[ClaimedJob]:
    async with (await stage.app.resources()).database.engine_autocommit() as conn:
        claim = await claims.claim_jobs(
            conn,
            worker_id=_WORKER,
            claim_id=uuid.uuid4(),
            lane="q:default",
            slots=JOBS,
            after_org=uuid.UUID(int=0),
            gates=False,
        )
    return claim.jobs


async def _complete(stage: Stage, jobs: Sequence[ClaimedJob]) -> None:
    """Complete jobs of a claim that has more, as a worker does."""
    async with (await stage.app.resources()).database.engine_autocommit() as conn:
        other = await work.complete_plain(conn, [(job, None) for job in jobs])
        rest = [(job, None) for job in jobs if job.key[:2] in other]
        if rest:
            await work.complete(conn, rest, worker_id=_WORKER)


def _is_blocked(stage: Stage) -> bool:
    return stage.sql.execute("select exists (select from pg_locks where not granted)").fetchone() == (True,)
