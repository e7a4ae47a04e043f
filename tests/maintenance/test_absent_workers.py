"""Absent workers: which are found, when they are confirmed, and what is recorded."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.errors import IdleInTransactionSessionTimeout

from duly import Duly
from duly.maintenance import reaper as reaper_module
from duly.maintenance.reaper import AbsentWorkers, Reaper
from duly.testing import FreshDatabase
from duly.worker import workers_store as workers
from tests.worker.working import claim_and_vanish, seconds

ONE, OTHER = uuid.uuid4(), uuid.uuid4()
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=1)
NONE, SOME = "1 us", "9 s"
"""How long a worker may be silent: no time at all, and longer than a test takes."""
LONG_AGO = "now() - interval '31 s'"


def test_a_worker_absent_in_every_sweep_for_long_enough_is_confirmed() -> None:
    memory = AbsentWorkers()
    assert memory.confirmed({ONE: NOON}, 100.0) == {}
    assert memory.confirmed({ONE: LATER, OTHER: LATER}, 101.9) == {}
    assert memory.confirmed({ONE: LATER, OTHER: LATER}, 102.0) == {ONE: NOON}
    assert memory.confirmed({ONE: LATER, OTHER: LATER}, 104.0) == {ONE: NOON, OTHER: LATER}


def test_a_worker_that_came_back_is_no_longer_absent() -> None:
    memory = AbsentWorkers()
    memory.confirmed({ONE: NOON}, 100.0)
    memory.confirmed({}, 101.0)
    assert memory.confirmed({ONE: LATER}, 102.5) == {}
    assert memory.confirmed({ONE: LATER}, 104.5) == {ONE: LATER}


@pytest.mark.parametrize("way", ["stood still", "in trouble"])
def test_sweeps_before_a_gap_do_not_count(way: str) -> None:
    memory = AbsentWorkers()
    memory.confirmed({ONE: NOON}, 100.0)
    if way == "in trouble":
        memory.forget()
    now = 200.0 if way == "stood still" else 103.0
    assert memory.confirmed({ONE: LATER}, now) == {}
    assert memory.confirmed({ONE: LATER}, now + 2) == {ONE: LATER}


def silent_worker(sql: psycopg.Connection[Any], silence: str | None = NONE, **changes: str) -> uuid.UUID:
    """One that has just sent a heartbeat, and may be silent for so long from now on."""
    worker_id = uuid.uuid4()
    sql.execute(
        """insert into duly.workers
           (worker_id, name, host, pid, version, layout, queues, slots, lease, silence)
           values (%s, 'w', 'h', 1, '0', 4, '{q:default}', 1, '30 s', %s)""",
        [worker_id, silence],
    )
    for column, value in changes.items():
        sql.execute(f"update duly.workers set {column} = {value} where worker_id = %s", [worker_id])
    return worker_id


@contextmanager
def present(url: str, worker_id: uuid.UUID) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as conn:
        assert workers.hold_presence(conn, worker_id)
        pid = conn.info.backend_pid
        yield conn
    with psycopg.connect(url, autocommit=True) as conn:
        # Its end is noticed a moment later.
        while conn.execute(
            "select exists (select from pg_stat_activity where pid = %s)", [pid]
        ).fetchone() == (True,):
            pass


async def absent(app: Duly) -> set[uuid.UUID]:
    async with (await app.resources()).database.engine() as conn:
        return set(await workers.list_absent(conn))


async def test_a_silent_worker_without_a_connection_is_absent(
    app: Duly, sql: psycopg.Connection[Any], fresh: FreshDatabase
) -> None:
    gone, busy = silent_worker(sql), silent_worker(sql)
    silent_worker(sql, SOME)
    silent_worker(sql, None)
    silent_worker(sql, stopped_at="now()")
    silent_worker(sql, lost_at="now()")
    with present(fresh.direct_url, busy):
        assert await absent(app) == {gone}
    assert await absent(app) == {gone, busy}


async def test_a_second_connection_keeps_a_worker_present_when_the_first_one_ends(
    app: Duly, sql: psycopg.Connection[Any], fresh: FreshDatabase
) -> None:
    busy = silent_worker(sql)
    with present(fresh.direct_url, busy) as first, present(fresh.direct_url, busy):
        first.close()
        assert await absent(app) == set()


async def test_other_locks_make_no_worker_present(
    app: Duly, sql: psycopg.Connection[Any], fresh: FreshDatabase
) -> None:
    gone = silent_worker(sql)
    with present(fresh.direct_url, uuid.uuid4()) as conn:
        conn.execute("select pg_advisory_lock(1), pg_advisory_lock(2, 3)")
        assert await absent(app) == {gone}
    with psycopg.connect(fresh.direct_url, dbname="postgres", autocommit=True) as elsewhere:
        assert workers.hold_presence(elsewhere, gone)
        assert await absent(app) == {gone}, "in another database it means another worker"


async def test_a_worker_without_a_heartbeat_since_the_server_start_has_its_lease(
    app: Duly, sql: psycopg.Connection[Any]
) -> None:
    one, _ = (silent_worker(sql, lease="interval '9 years'") for _ in range(2))
    sql.execute(
        """update duly.workers set heartbeat_at = pg_postmaster_start_time()
               + interval '1 ms' * case when worker_id = %s then 1 else -1 end""",
        [one],
    )
    assert await absent(app) == {one}


async def test_a_worker_with_a_new_id_is_no_longer_present_under_the_old_one(
    app: Duly, sql: psycopg.Connection[Any], fresh: FreshDatabase
) -> None:
    with present(fresh.direct_url, uuid.uuid4()) as conn:
        assert workers.hold_presence(conn, uuid.uuid4())
        held = "select count(*) from pg_locks where locktype = 'advisory' and pid = %s"
        assert sql.execute(held, [conn.info.backend_pid]).fetchone() == (1,)


async def test_only_silent_workers_of_the_absent_ones_are_lost(
    app: Duly, sql: psycopg.Connection[Any]
) -> None:
    gone, back, unknown = (silent_worker(sql, silence) for silence in (NONE, SOME, None))
    over, not_asked = silent_worker(sql, heartbeat_at=LONG_AGO), silent_worker(sql)
    async with (await app.resources()).database.engine() as conn:
        lost = await workers.declare_lost(conn, dict.fromkeys((gone, back, unknown), NOON))
    assert lost == {gone: NOON, over: None}
    still = sql.execute("select worker_id from duly.workers where lost_at is null").fetchall()
    assert {row[0] for row in still} == {back, unknown, not_asked}


async def vanished(app: Duly, sql: psycopg.Connection[Any]) -> tuple[Any, uuid.UUID]:
    """A job whose worker was present, and is no more."""

    @app.job("step.take")
    async def take() -> None: ...

    handle = await take.enqueue()
    worker_id = await claim_and_vanish(app, handle.job_id)
    sql.execute("update duly.workers set silence = %s", [NONE])
    return handle, worker_id


async def test_the_record_says_that_the_connection_was_closed(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, worker_id = await vanished(app, sql)
    reaper = Reaper(app)
    await reaper.once()
    assert (await handle.status()).status == "running", "one look is not enough"
    monkeypatch.setattr(reaper_module, "_CONFIRM_SECONDS", 0.0)
    await reaper.once()
    job = await handle.status()
    [record] = job.reconciliations
    assert (job.status, job.attempt, record.kind) == ("queued", 1, "lost_lease")
    assert record.message == "the connection of its worker was closed, and no further heartbeat came"
    row = sql.execute(
        "select absent_since, heartbeat_at, lost_at > absent_since from duly.workers"
    ).fetchone()
    assert row is not None
    assert row[2]
    assert record.evidence == {
        "worker_id": str(worker_id),
        "worker": "crashed",
        "last_seen_at": row[1].astimezone(UTC).isoformat(),
        "lease_seconds": 30.0,
        "connection_closed_since": row[0].astimezone(UTC).isoformat(),
        "silence_seconds": 1e-06,
        "attempt": 1,
    }


async def test_the_record_says_that_only_the_lease_expired(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], fresh: FreshDatabase
) -> None:
    handle, worker_id = await vanished(app, sql)
    sql.execute(f"update duly.workers set heartbeat_at = {LONG_AGO}")
    with present(fresh.direct_url, worker_id):
        await Reaper(app).once()
    [record] = (await handle.status()).reconciliations
    assert record.message == "its worker stopped sending heartbeats"
    assert set(record.evidence) == {"worker_id", "worker", "last_seen_at", "lease_seconds", "attempt"}


async def test_after_an_outage_absent_workers_have_time_to_reconnect(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    handle, _ = await vanished(app, sql)
    reaper = Reaper(app, grace=seconds(7))
    await reaper.once()
    sql.execute("alter table duly.workers rename to hidden")
    with pytest.raises(psycopg.errors.UndefinedTable):
        await reaper.once()
    sql.execute("alter table duly.hidden rename to workers")
    assert await reaper.once() == seconds(7)
    assert reaper._absent_workers._absent == {}
    await reaper.once()
    assert (await handle.status()).status == "running"


def test_a_worker_that_hangs_in_its_heartbeat_locks_its_row_no_longer_than_its_lease(
    sql: psycopg.Connection[Any], fresh: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = silent_worker(sql)
    waited = []

    def stand_still(conn: Any, held: Any) -> list[Any]:
        waited.append(sql.execute("select worker_id from duly.workers for update").fetchone())
        return []

    monkeypatch.setattr(workers, "_read_updates", stand_still)
    with (
        psycopg.connect(fresh.direct_url, autocommit=True) as conn,
        pytest.raises(IdleInTransactionSessionTimeout),
    ):
        workers.beat(conn, who, [(who, who, 1)], draining=False, lease=seconds(0.2))
    assert waited == [(who,)]
