"""The doctor notices what keeps work from flowing: room, workers, clocks, debts, and times that cannot be."""

from __future__ import annotations

import uuid
from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self

import psycopg
import pytest

from duly import Duly
from duly.core.errors import ConfigurationError
from duly.core.job import SYSTEM_ORG
from duly.core.policy import LifecyclePolicy
from duly.features.doctor import server_checks
from duly.features.doctor.finding import Verdict
from duly.testing import FreshDatabase
from duly.worker import workers_store as worker_store
from tests.db.tenancy import insert
from tests.features.doctor.examined import USUAL, examined, of, red, skipped
from tests.worker.working import brief, until, working

WORKER = """
    insert into duly.workers (worker_id, name, host, pid, version, queues, slots, lease, clock_offset)
    values (gen_random_uuid(), %s, 'mill', 1, '0', '{q:default}', 1, '30 s', %s)
"""


async def test_a_missing_partition_is_named_and_the_fix_makes_it(app: Duly, sql: psycopg.Connection) -> None:
    query = """
        select partition from duly.partitions where parent = 'event_log' and starts_at > now()
        order by starts_at limit 1
    """
    [name] = sql.execute(query).fetchone()
    sql.execute(f"drop table duly.{name}")
    lines = await examined(app)
    assert red(lines) == {"partitions"}
    assert lines["partitions"].seen == f"duly.{name} is missing"
    sql.execute(str(lines["partitions"].fix).partition("psql: ")[2])
    sql.execute("reset role")
    assert red(await examined(app)) == set()


async def test_the_farthest_partition_may_be_a_little_late(app: Duly, sql: psycopg.Connection) -> None:
    query = "select max(partition) from duly.partitions where parent = 'job_states' and starts_at is not null"
    [name] = sql.execute(query).fetchone()
    sql.execute(f"drop table duly.{name}")
    lines = await examined(app)
    assert lines["partitions"].verdict is Verdict.WARN
    assert name in lines["partitions"].seen


async def test_the_partition_that_catches_the_rest_is_missed_too(app: Duly, sql: psycopg.Connection) -> None:
    sql.execute("drop table duly.schedule_ticks_default")
    lines = await examined(app)
    assert red(lines) == {"partitions"}
    sql.execute(f"set role duly_owner; {str(lines['partitions'].fix).removeprefix('as duly_owner: ')}")
    sql.execute("reset role")
    assert red(await examined(app)) == set()


@pytest.mark.parametrize(
    ("offset", "verdict", "part"),
    [
        (timedelta(seconds=4), Verdict.OK, "1 workers are within 5 s"),
        (timedelta(seconds=-6), Verdict.WARN, "the worker late is 0:00:06 behind the database's"),
        (timedelta(hours=1), Verdict.FAIL, "the worker late is 1:00:00 ahead of the database's"),
        (timedelta(hours=-1), Verdict.FAIL, "the worker late is 1:00:00 behind the database's"),
    ],
)
async def test_a_worker_whose_clock_is_off_is_named(
    app: Duly, sql: psycopg.Connection, offset: timedelta, verdict: Verdict, part: str
) -> None:
    sql.execute(WORKER, ["late", offset])
    lines = await examined(app)
    assert lines["clock"].verdict is verdict
    assert part in lines["clock"].seen
    assert of(lines, Verdict.FAIL, Verdict.WARN) - USUAL <= {"clock"}
    sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour'")
    assert (await examined(app))["clock"].verdict is Verdict.OK, "who is silent is not asked for the time"


class AnHourAhead(datetime):
    """The clock of a machine that nobody has set."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(hours=1)


async def test_a_running_worker_with_a_wrong_clock_is_found_and_works_all_the_same(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job("mill.grind")
    async def grind() -> str:
        return "flour"

    monkeypatch.setattr(worker_store, "datetime", AnHourAhead)
    async with working(app, name="mill-7", heartbeat=brief(0.1)):
        await until(sql, "select bool_and(clock_offset is not null) from duly.workers")
        lines = await examined(app)
        assert await (await grind.enqueue()).result(30) == "flour"
    assert red(lines) == {"clock"}, lines
    assert "the worker mill-7 is 1:00:00 ahead" in lines["clock"].seen


async def test_jobs_that_nobody_takes_are_noticed_until_there_is_a_worker(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID
) -> None:
    @app.job("mill.grind", category="transfer")
    async def grind() -> None: ...

    await grind.enqueue()
    lines = await examined(app)
    assert red(lines) == {"workers"}
    assert "1 jobs wait in q:exports" in lines["workers"].seen
    assert "--queues q:exports" in str(lines["workers"].fix)
    sql.execute(WORKER, ["elsewhere", None])
    assert red(await examined(app)) == {"workers"}
    sql.execute("update duly.workers set queues = '{q:exports}'")
    assert red(await examined(app)) == set()
    sql.execute("update duly.workers set draining_at = now()")
    assert red(await examined(app)) == {"workers"}
    sql.execute("update duly.queues set paused_at = now(), paused_by = 'a' where queue = 'q:exports'")
    assert red(await examined(app)) == set(), "nobody wants them to be taken"


@pytest.mark.parametrize(
    ("age", "verdict"), [("20 minutes", Verdict.WARN), ("25 hours", Verdict.FAIL), ("1 minute", Verdict.OK)]
)
async def test_a_job_that_waits_for_long_is_noticed_unless_its_queue_is_paused(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID, age: str, verdict: Verdict
) -> None:
    @app.job("mill.grind")
    async def grind() -> None: ...

    await grind.enqueue()
    sql.execute(WORKER, ["busy", None])
    sql.execute(f"update duly.job_records set run_at = now() - interval '{age}'")
    assert (await examined(app))["backlog"].verdict is verdict
    sql.execute("update duly.queues set paused_at = now(), paused_by = 'a' where queue = 'q:default'")
    lines = await examined(app)
    assert lines["backlog"].verdict is Verdict.OK
    assert "q:default is paused" in lines["backlog"].seen


async def test_a_job_whose_time_has_come_waits_even_if_nobody_made_it_ready(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID
) -> None:
    @app.job("mill.grind", schedulable=True)
    async def grind() -> None: ...

    await grind.options(scheduled_for=datetime.now(UTC) + timedelta(hours=1)).enqueue()
    assert red(await examined(app)) == set()
    sql.execute("update duly.scheduled set run_at = now() - interval '2 minutes'")
    lines = await examined(app)
    assert red(lines) == {"workers"}
    assert "1 jobs wait in q:default" in lines["workers"].seen


async def test_callbacks_that_are_owed_for_long_are_noticed(
    app: Duly, sql: psycopg.Connection, org: uuid.UUID
) -> None:
    debt = """
        insert into duly.bridge_debts (org_id, job_id, job_type, owed_at, due_at, tries, last_error)
        values (%s, gen_random_uuid(), 'mill.grind', now() - interval '2 hours', now() + %s::interval, 3,
                'no mail')
    """
    sql.execute(debt, [org, "1 minute"])
    lines = await examined(app)
    assert lines["bridge"].verdict is Verdict.WARN
    assert "keep failing, for 2:00:0" in lines["bridge"].seen
    sql.execute("update duly.bridge_debts set due_at = now() - interval '10 minutes'")
    lines = await examined(app)
    assert red(lines) == {"bridge"}
    assert "mill.grind" in str(lines["bridge"].fix)
    sql.execute("update duly.bridge_debts set owed_at = now(), due_at = now()")
    assert red(await examined(app)) == set()


async def test_open_alerts_are_seen_and_that_nobody_works(app: Duly, sql: psycopg.Connection) -> None:
    async with working(app):
        assert red(await examined(app)) == set()
    ago = "now() - interval '6 minutes'"
    sql.execute(f"update duly.workers set heartbeat_at = {ago}, stopped_at = {ago}")
    insert(sql, "alerts", SYSTEM_ORG, kind="queue_depth", severity="warning", summary="101 jobs wait")
    lines = await examined(app)
    assert red(lines) == {"alerts"}
    assert "no worker was heard of for 00:06:0" in lines["alerts"].seen
    assert "101 jobs wait (since " in lines["alerts"].seen
    sql.execute("delete from duly.workers")
    assert (await examined(app))["alerts"].verdict is Verdict.WARN


async def test_a_transaction_that_stays_open_is_named_and_can_be_ended(
    app: Duly, fresh: FreshDatabase, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_checks, "_LONG", timedelta(0))
    with closing(psycopg.connect(fresh.direct_url, application_name="report")) as forgotten:
        forgotten.execute("select 1")
        line = (await examined(app))["transactions"]
        assert (line.verdict, "report" in line.seen) == (Verdict.WARN, True), line
        sql.execute(str(line.fix))
        with pytest.raises(psycopg.errors.AdminShutdown):
            forgotten.execute("select 1")
        assert (await examined(app))["transactions"].verdict is Verdict.OK


async def test_a_table_without_autovacuum_and_one_full_of_dead_rows_are_named(
    app: Duly, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_checks, "_DEAD_ROWS", 10)
    sql.execute("alter table duly.released_blobs set (autovacuum_enabled = off)")
    sql.execute("insert into duly.released_blobs (blob_ref) select n::text from generate_series(1, 50) n")
    sql.execute("delete from duly.released_blobs")
    sql.execute("select pg_stat_force_next_flush()")
    sql.execute("select 1")
    line = (await examined(app))["vacuum"]
    assert line.verdict is Verdict.WARN
    assert "autovacuum is off for duly.released_blobs" in line.seen
    assert "duly.released_blobs has 50 dead rows" in line.seen


async def test_a_full_disk_is_noticed(app: Duly, monkeypatch: pytest.MonkeyPatch) -> None:
    if (await examined(app))["disk"].seen.endswith("from here"):
        pytest.skip("the server of this run is on another machine")
    monkeypatch.setattr(server_checks, "_LITTLE", 2**80)
    assert (await examined(app))["disk"].verdict is Verdict.WARN
    monkeypatch.setattr(server_checks, "_ALMOST_NOTHING", 2**80)
    assert (await examined(app))["disk"].verdict is Verdict.FAIL


def test_slots_and_archives_that_pile_up_the_log_are_told_from_those_that_do_not() -> None:
    def slot(**facts: Any) -> list[Verdict]:
        row = {"slot": "copy", "active": True, "wal_status": "reserved", "bytes": 0, **facts}
        return [one.verdict for one in server_checks._slots([row])]

    assert slot() == slot(active=False) == []
    assert slot(bytes=2 * 2**30) == slot(wal_status="lost") == [Verdict.WARN]
    assert slot(bytes=20 * 2**30, active=False) == [Verdict.FAIL]

    def archive(**facts: Any) -> list[Verdict]:
        row = {"failing": True, "segment": "0001", "since": timedelta(minutes=1), **facts}
        return [one.verdict for one in server_checks._archiver([row])]

    assert archive(failing=False) == []
    assert archive() == [Verdict.WARN]
    assert archive(since=None) == archive(since=timedelta(hours=2)) == [Verdict.FAIL]


def test_rows_that_should_have_been_frozen_are_noticed() -> None:
    def frozen(age: int) -> list[Verdict]:
        row = {"relation": "duly.ledger", "age": age, "most": 200_000_000}
        return [one.verdict for one in server_checks._unfrozen(row)]

    assert frozen(210_000_000) == []
    assert frozen(310_000_000) == [Verdict.WARN]
    assert frozen(1_700_000_000) == [Verdict.FAIL]


def _overlong(app: Duly) -> None:
    @app.job("docs.extract", timeout=timedelta(hours=7))
    async def extract() -> None: ...


BOTH = ("timeout of docs.extract = 7:00:00", "running_stale_after of docs.extract = 6:00:00")


async def test_times_that_cannot_be_kept_are_one_red_line(app: Duly) -> None:
    _overlong(app)
    lines = await examined(app)
    assert red(lines) == {"invariants"}
    assert all(part in lines["invariants"].seen for part in BOTH)
    away = Duly(database_url="postgresql://127.0.0.1:1/none")
    _overlong(away)
    assert red(await examined(away)) == {"connection", "invariants"}, (
        "the code can be read without a database"
    )


async def test_published_job_types_are_judged_where_the_code_is_not_seen(
    app: Duly, fresh: FreshDatabase
) -> None:
    _overlong(app)

    @app.job("docs.told", lifecycle=LifecyclePolicy(requires_failed_bridge=True))
    async def told() -> None: ...

    await app.publish()
    lines = await examined(Duly(database_url=fresh.direct_url))
    assert red(lines) == {"invariants"}
    assert all(part in lines["invariants"].seen for part in BOTH)
    assert "docs.told" not in lines["invariants"].seen, "its callbacks are in the code"
    assert "docs.told" in (await examined(app))["invariants"].seen


async def test_a_healthy_application_is_counted(app: Duly) -> None:
    @app.job("docs.index", timeout=timedelta(seconds=3))
    async def index() -> None: ...

    lines = await examined(app)
    assert (red(lines), skipped(lines)) == (set(), set())
    assert lines["invariants"].seen == "1 job types, as the code declares them"


def test_a_worker_refuses_to_start_with_a_timeout_beyond_the_horizon(app: Duly) -> None:
    _overlong(app)
    with pytest.raises(ConfigurationError) as refused:
        app.worker()
    assert refused.value.field == "timeout"
    assert all(part in refused.value.message for part in BOTH)
    assert refused.value.fix


def test_a_worker_refuses_a_lease_that_outlasts_a_job_and_a_retention_that_does_not(
    app: Duly, fresh: FreshDatabase
) -> None:
    with pytest.raises(
        ConfigurationError, match=r"lease of the worker = 6:00:00.*running_stale_after of duly\."
    ):
        app.worker(lease=timedelta(hours=6))
    forgetful = Duly(database_url=fresh.url, keep_events=timedelta(hours=30))
    with pytest.raises(ConfigurationError, match=r"keep_events = 1 day, 6:00:00") as refused:
        forgetful.worker()
    assert refused.value.field == "keep_events"


def test_a_short_timeout_shortens_what_is_expected_unless_it_was_said(app: Duly) -> None:
    seconds = timedelta(seconds=3)

    @app.job("docs.quick", timeout=seconds)
    async def quick() -> None: ...

    @app.job("docs.usual", lifecycle=LifecyclePolicy(queued_stale_after=timedelta(hours=1)), timeout=seconds)
    async def usual() -> None: ...

    @app.job("docs.long", timeout=timedelta(hours=5))
    async def long() -> None: ...

    expected = [job.policy.lifecycle.expected_max_runtime for job in (quick, usual, long)]
    assert expected == [seconds / 2, seconds / 2, timedelta(minutes=30)]
    assert usual.policy.lifecycle.queued_stale_after == timedelta(hours=1)
    app.worker()

    @app.job("docs.said", timeout=seconds, lifecycle=LifecyclePolicy(expected_max_runtime=seconds))
    async def said() -> None: ...

    assert said.policy.lifecycle.expected_max_runtime == seconds
    with pytest.raises(ConfigurationError, match=r"expected_max_runtime of docs\.said"):
        app.worker()
