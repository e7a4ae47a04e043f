"""`ctx.transaction()` under kill -9 at two hundred random moments: every effect happens exactly once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from pathlib import Path

import psycopg

from duly import Actor, Duly, context
from duly.maintenance.reaper import Reaper
from duly.testing import FreshDatabase
from tests.journeys.worker_process import make_app

KILLERS, KILLS, JOBS = 2, 100, 6000
TABLE = (
    "create table public.effects (org_id uuid, job_id uuid); grant insert on public.effects to duly_tenant"
)
COUNTS = """
    select count(*) as jobs, count(*) filter (where j.status = 'completed' and e.n = 1) as exactly_once
    from duly.jobs j
    left join (select job_id, count(*) as n from public.effects group by job_id) e using (job_id)
"""
OTHERS = """
    select job_id, status, outcome, attempt, error_message, e.event_seq, e.event_type, e.occurred_at
    from duly.jobs join duly.job_events e using (org_id, job_id)
    where status <> 'completed' or (select count(*) from public.effects f where f.job_id = e.job_id) <> 1
    order by job_id, e.event_seq
"""
VICTIMS = "select count(distinct worker_id) from duly.job_attempts where ended_by = 'job.lease_lost'"


async def test_every_completed_job_has_its_effect_exactly_once(
    fresh: FreshDatabase, sql: psycopg.Connection, tmp_path: Path
) -> None:
    sql.execute(TABLE)
    app = make_app(fresh.url, fresh.direct_url, str(tmp_path / "blobs"))
    org = uuid.uuid4()
    await app.create_org(org, "Acme")
    effect = app.registry.get("step.effect")
    with context(org_id=org, actor=Actor.user("u1")):
        await app.enqueue_many([effect.call(n) for n in range(JOBS)])
    killers = [_killer(fresh, tmp_path, seed) for seed in range(KILLERS)]
    output = [await _sweeping(app, killer) for killer in killers]
    assert [lines.count("killed") for lines in output] == [KILLS] * KILLERS
    await _finish(app, sql)
    jobs, exactly_once = sql.execute(COUNTS).fetchone() or ()
    assert (jobs, exactly_once) == (JOBS, JOBS), sql.execute(OTHERS).fetchall()
    assert sql.execute("select count(*) from public.effects").fetchone() == (JOBS,), "no effect without a job"
    victims = sql.execute(VICTIMS).fetchone() or (0,)
    assert victims[0] > 0.75 * KILLERS * KILLS, "the kills came while jobs were running"
    await app.close()


def _killer(fresh: FreshDatabase, tmp_path: Path, seed: int) -> subprocess.Popen[str]:
    where = [fresh.url, fresh.direct_url, str(tmp_path / "blobs")]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.journeys.killer", *where, str(KILLS), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


async def _sweeping(app: Duly, killer: subprocess.Popen[str]) -> list[str]:
    """Collect the output of the killer; meanwhile return the jobs of its victims to the queue."""
    reading = asyncio.create_task(asyncio.to_thread(killer.communicate))
    while not reading.done():
        await asyncio.wait([reading], timeout=(await Reaper(app).once()).total_seconds() / 4)
    return (await reading)[0].splitlines()


async def _finish(app: Duly, sql: psycopg.Connection) -> None:
    """Run one worker until no job is queued or claimed."""
    async with app.worker() as worker:
        while sql.execute("select exists (select from duly.claims) or exists (select from duly.ready)"
                          " or exists (select from duly.scheduled)").fetchone() == (True,):  # fmt: skip
            await Reaper(app).once()
            await worker.loop_events.wait("idle", worker.loop_events.counts["idle"] + 1)
