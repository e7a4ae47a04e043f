"""Observers and the export read what an operator may read, and detect rows that must not change."""

from __future__ import annotations

import asyncio
import threading
import uuid
from pathlib import Path
from typing import Any

import psycopg

from duly import Context, Duly, Status
from duly.features.queues.service import Queues
from duly.testing import FreshDatabase
from duly.testing.history import (
    JobObservation,
    LeaseObservation,
    Observer,
    by_field,
    check,
    export,
    load,
    watch,
)
from duly.testing.history.recorder import Record
from tests.worker.blocking_jobs import WHY
from tests.worker.working import settle_attempts, until


async def _two_jobs(app: Duly) -> list[uuid.UUID]:
    @app.job("see.work")
    async def work(ctx: Context, n: int) -> int:
        await ctx.partial({"n": n}, percent=50)
        return n

    handles = [await work.enqueue(n) for n in (1, 2)]
    await handles[1].cancel("enough")
    return [handle.job_id for handle in handles]


async def test_an_observer_sees_every_change_once(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    observations: list[Any] = []
    observer = Observer("o1", observations.append, parts=1)
    worked, canceled = await _two_jobs(app)
    for _ in range(2):
        observer.observe(sql)
    assert [(s.job_id, s.status, s.event_seq, s.visible_events, bool(s.digest)) for s in observations] == [
        (worked, Status.QUEUED, 1, 1, False),
        (canceled, Status.CANCELED, 2, 2, True),
    ]
    await settle_attempts(app)
    observations.clear()
    async with await psycopg.AsyncConnection.connect(sql.info.dsn, autocommit=True) as conn:
        await observer.observe_async(conn)
    [last] = [s for s in observations if isinstance(s, JobObservation)]
    assert (last.status, last.attempt, last.progress_percent, last.visible_events) == ("completed", 1, 100, 4)


async def test_an_operator_may_observe_and_export(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    await _two_jobs(app)
    await settle_attempts(app)
    sql.execute("set role duly_operator")
    observations: list[Record] = []
    Observer("o1", observations.append, parts=1).observe(sql)
    history = export(sql, **by_field(observations))
    assert check(history).holds, check(history).table()
    assert [len(rows) for rows in (history.jobs, history.events, history.results)] == [2, 6, 2]
    assert {sight.observer for sight in history.observations} == {"o1", "export"}


async def test_a_row_that_changes_after_its_end_is_noticed(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    ended, _ = await _two_jobs(app)
    await settle_attempts(app)
    await Queues(app).pause("q:exports", **WHY)
    observations: list[Record] = []
    Observer("o1", observations.append, parts=1).observe(sql)
    assert check(export(sql, **by_field(observations))).of("I19") == []
    sql.execute("update duly.job_states set error_count = 7 where job_id = %s", [ended])
    sql.execute("update duly.audit_entries set reason = 'another'")
    found = check(export(sql, **by_field(observations))).of("I19")
    assert [violation.job_id for violation in found] == [ended, None]
    assert "was rewritten" in found[1].message


def _worker(sql: psycopg.Connection[Any], silent_for: float) -> uuid.UUID:
    worker_id = uuid.uuid4()
    sql.execute(
        """insert into duly.workers
           (worker_id, name, host, pid, version, layout, queues, slots, lease, heartbeat_at)
           values (%s, 'w', 'h', 1, '0', 4, '{q:default}', 1, '5 s', now() - make_interval(secs => %s))""",
        [worker_id, silent_for],
    )
    return worker_id


async def test_an_expired_lease_counts_while_a_worker_could_have_swept(
    app: Duly, sql: psycopg.Connection[Any]
) -> None:
    observations: list[Any] = []
    observer = Observer("o1", observations.append)
    silent = _worker(sql, 3600)
    observer.observe(sql)
    assert observations == [], "no worker could sweep"
    alive = _worker(sql, 0)
    observer.observe(sql)
    observer.observe(sql)
    [sight] = observations
    assert sight.worker_id == silent
    assert 0 < sight.expired_for < 60
    observations.clear()
    observer.interrupted()
    observer.observe(sql)
    assert observations == [], "time without the database does not count"
    sql.execute("update duly.workers set lost_at = now() where worker_id = %s", [silent])
    observer.observe(sql)
    observer.observe(sql)
    assert observations == [LeaseObservation(silent, 0.0, lost=True)]
    assert alive != silent


async def test_a_watch_goes_on_through_an_outage(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], fresh: FreshDatabase, tmp_path: Path
) -> None:
    log, stop = tmp_path / "log", threading.Event()
    log.touch()
    values = {"name": "o1", "stop": stop, "pause": 0.01}
    thread = threading.Thread(target=watch, args=(fresh.direct_url, log), kwargs=values)
    thread.start()
    try:
        await _two_jobs(app)
        watching = (
            "from pg_stat_activity where query like '%audit_entries%' and pid <> pg_backend_pid() "
            "and datname = current_database()"
        )
        await until(sql, f"select bool_or(pg_terminate_backend(pid, 5000)) {watching}")
        await settle_attempts(app)
        await until(sql, f"select count(*) > 0 {watching}")
        while not [s for s in load([log]) if isinstance(s, JobObservation) and s.status == "completed"]:
            await asyncio.to_thread(lambda: None)
    finally:
        stop.set()
        thread.join()
    assert check(export(sql, **by_field(load([log])))).holds
