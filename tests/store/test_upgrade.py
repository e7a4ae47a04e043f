"""A database of a previous release, with its jobs in it, is brought forward and its jobs are done."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import psycopg
import pytest

from duly import Duly, Status
from duly.store.migrate import migrate
from duly.testing import Cluster
from duly.upkeep.reaper import Reaper

RELEASED = {
    "0.1.0": 9,
    "0.2.0": 15,
    "0.3.0": 17,
    "0.4.0": 20,
    "0.5.0": 21,
    "0.6.0": 22,
    "0.7.0": 23,
    "0.8.0": 23,
}
"""The last migration of each release."""

POLICY = (
    '{"category": "default", "queue": "q:default", "priority": 0, "retry": {"max_attempts": 5, "base": 5.0,'
    ' "cap": 300.0, "delays": []}, "timeout": 3600.0, "ledger_ttl": 604800.0, "schedulable": true}'
)
ENQUEUE = """
    select duly.enqueue(
        org_id => %s, job_type => 'step.take', payload => %s, actor_type => 'user', actor_id => 'u1',
        request_id => 'r1', scheduled_for => %s)
"""


@pytest.mark.parametrize("release", RELEASED)
def test_the_jobs_of_a_previous_release_are_done(cluster: Cluster, tmp_path: Path, release: str) -> None:
    with cluster.fresh(migrated=False) as fresh, psycopg.connect(fresh.direct_url, autocommit=True) as sql:
        migrate(fresh.direct_url, upto=RELEASED[release])
        org = uuid.uuid4()
        waiting, held = _old_jobs(sql, org)
        assert migrate(fresh.direct_url)[0].version == RELEASED[release] + 1
        app = Duly(
            database_url=fresh.url,
            database_direct_url=fresh.direct_url if fresh.url != fresh.direct_url else None,
            blobs_url=str(tmp_path),
        )

        @app.job("step.take")
        async def take(n: int) -> int:
            return n + 1

        async def main() -> list[tuple[Status, int]]:
            async with app, app.worker():
                await Reaper(app).once()
                handles = [app.handle(job, org_id=org) for job in [*waiting, held]]
                ended = [await handle.wait(timeout=30) for handle in handles]
                return [(job.status, job.attempt) for job in ended]

        assert asyncio.run(main()) == [(Status.COMPLETED, 1), (Status.COMPLETED, 1), (Status.COMPLETED, 2)]


def _old_jobs(sql: psycopg.Connection, org: uuid.UUID) -> tuple[list[uuid.UUID], uuid.UUID]:
    """A job that waits, one for later that is due by now, and one that a dead worker holds."""
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Acme')", [org])
    sql.execute("insert into duly.job_types values ('step.take', %s, '{}')", [POLICY])
    one, later, held = (
        sql.execute(ENQUEUE, [org, f'{{"n": {n}}}', at]).fetchone()[0]
        for n, at in ((1, None), (2, "2999-01-01"), (3, None))
    )
    sql.execute("update duly.scheduled set run_at = now() where job_id = %s", [later])
    worker = uuid.uuid4()
    sql.execute(
        "insert into duly.workers (worker_id, name, host, pid, version, queues, slots, lease, heartbeat_at) "
        "values (%s, 'old', 'h', 1, '0.1.0', '{q:default}', 1, '1 s', now() - interval '1 hour')",
        [worker],
    )
    sql.execute("delete from duly.ready where job_id = %s", [held])
    sql.execute(
        "insert into duly.job_states (org_id, job_id, status, outcome, attempt, event_seq, run_at, "
        "worker_id, attempt_started_at, started_at, updated_at) "
        "values (%s, %s, 'running', 'pending', 1, 2, now(), %s, now(), now(), now())",
        [org, held, worker],
    )
    sql.execute(
        "insert into duly.event_log (org_id, job_id, event_seq, event_type, status, attempt, occurred_at, "
        "actor_type, actor_id) values (%s, %s, 2, 'job.started', 'running', 1, now(), 'worker', 'old')",
        [org, held],
    )
    sql.execute(
        "insert into duly.claims values (gen_random_uuid(), %s, now(), array[%s], array[%s])",
        [worker, org, held],
    )
    return [one, later], held
