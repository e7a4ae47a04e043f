"""Checks of the work: partitions, workers, clocks, callbacks, and inconsistent durations."""

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
from duly.features.doctor.models import CheckVerdict
from duly.testing import FreshDatabase
from duly.worker import workers_store as worker_store
from tests.db.tenancy import insert
from tests.features.doctor.report_lines import USUAL, examined, of, red, skipped
from tests.worker.working import seconds, until, working

WORKER = """
    insert into duly.workers (worker_id, name, host, pid, version, layout, queues, slots, lease, clock_offset)
    values (gen_random_uuid(), %s, 'mill', 1, '0', 4, '{q:default}', 1, '30 s', %s)
"""


async def test_a_missing_partition_is_named_and_the_fix_creates_it(
    app: Duly, sql: psycopg.Connection
) -> None:
    query = """
        select partition from duly.partitions where parent = 'event_log' and starts_at > now()
        order by starts_at limit 1
    """
    [name] = sql.execute(query).fetchone()
    sql.execute(f"drop table duly.{name}")
    lines = await examined(app)
    assert red(lines) == {"partitions"}
    assert lines["partitions"].message == f"duly.{name} is missing"
    sql.execute(str(lines["partitions"].fix).partition("psql: ")[2])
    sql.execute("reset role")
    assert red(await examined(app)) == set()


async def test_a_missing_last_partition_is_a_warning(app: Duly, sql: psycopg.Connection) -> None:
    query = "select max(partition) from duly.partitions where parent = 'job_states' and starts_at is not null"
    [name] = sql.execute(query).fetchone()
    sql.execute(f"drop table duly.{name}")
    lines = await examined(app)
    assert lines["partitions"].verdict is CheckVerdict.WARN
    assert name in lines["partitions"].message


async def test_a_missing_default_partition_fails(app: Duly, sql: psycopg.Connection) -> None:
    sql.execute("drop table duly.schedule_ticks_default")
    lines = await examined(app)
    assert red(lines) == {"partitions"}
    sql.execute(f"set role duly_owner; {str(lines['partitions'].fix).removeprefix('as duly_owner: ')}")
    sql.execute("reset role")
    assert red(await examined(app)) == set()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("update duly.job_records set actor_id = ''", "no actor, request or correlation"),
        ("update duly.job_records set payload = '[]'", "its payload is not an object"),
        ("delete from duly.policies", "its policy is not stored"),
        ("update duly.job_records set project_id = org_id", "its project does not exist"),
        (
            "update duly.key_ledger set final_status = 'lost'",
            "its idempotency key has an unknown final status",
        ),
        ("update duly.job_states set outcome = 'succeeded'", "its state contradicts itself"),
        ("update duly.job_states set progress_percent = 101", "its progress is not between 0 and 100"),
        ("update duly.event_log set event_seq = 0", "an event of it has no number"),
    ],
)
async def test_rows_that_break_a_rule_are_named(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, change: str, rule: str
) -> None:
    @app.job("report.build")
    async def build() -> None: ...

    handle = await build.enqueue()
    insert(sql, "job_states", acting, job_id=handle.job_id)
    insert(sql, "event_log", acting, job_id=handle.job_id, event_seq=2)
    assert (await examined(app))["rows"].verdict is CheckVerdict.OK
    sql.execute(change)
    lines = await examined(app)
    assert lines["rows"].verdict is CheckVerdict.FAIL
    assert f"job {handle.job_id} of org {acting}: " in lines["rows"].message
    assert rule in lines["rows"].message


@pytest.mark.parametrize(
    ("offset", "verdict", "part"),
    [
        (timedelta(seconds=4), CheckVerdict.OK, "1 workers are within 5 s"),
        (timedelta(seconds=-6), CheckVerdict.WARN, "the worker late is 0:00:06 behind the database's"),
        (timedelta(hours=1), CheckVerdict.FAIL, "the worker late is 1:00:00 ahead of the database's"),
        (timedelta(hours=-1), CheckVerdict.FAIL, "the worker late is 1:00:00 behind the database's"),
    ],
)
async def test_a_worker_whose_clock_is_off_is_named(
    app: Duly, sql: psycopg.Connection, offset: timedelta, verdict: CheckVerdict, part: str
) -> None:
    sql.execute(WORKER, ["late", offset])
    lines = await examined(app)
    assert lines["clock"].verdict is verdict
    assert part in lines["clock"].message
    assert of(lines, CheckVerdict.FAIL, CheckVerdict.WARN) - USUAL <= {"clock"}
    sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour'")
    assert (await examined(app))["clock"].verdict is CheckVerdict.OK, "a silent worker's clock is not checked"


class AnHourAhead(datetime):
    """A clock that is one hour ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(hours=1)


async def test_a_running_worker_with_a_wrong_clock_is_named_and_still_works(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job("mill.grind")
    async def grind() -> str:
        return "flour"

    monkeypatch.setattr(worker_store, "datetime", AnHourAhead)
    async with working(app, name="mill-7", heartbeat=seconds(0.1)):
        await until(sql, "select bool_and(clock_offset is not null) from duly.workers")
        lines = await examined(app)
        assert await (await grind.enqueue()).result(30) == "flour"
    assert red(lines) == {"clock"}, lines
    assert "the worker mill-7 is 1:00:00 ahead" in lines["clock"].message


async def test_queued_jobs_without_a_worker_fail_until_there_is_one(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID
) -> None:
    @app.job("mill.grind", category="transfer")
    async def grind() -> None: ...

    await grind.enqueue()
    lines = await examined(app)
    assert red(lines) == {"workers"}
    assert "1 jobs are queued in q:exports" in lines["workers"].message
    assert "--queues q:exports" in str(lines["workers"].fix)
    sql.execute(WORKER, ["elsewhere", None])
    assert red(await examined(app)) == {"workers"}
    sql.execute("update duly.workers set queues = '{q:exports}'")
    assert red(await examined(app)) == set()
    sql.execute("update duly.workers set draining_at = now()")
    assert red(await examined(app)) == {"workers"}
    sql.execute("update duly.queues set paused_at = now(), paused_by = 'a' where queue = 'q:exports'")
    assert red(await examined(app)) == set(), "a paused queue needs no worker"


@pytest.mark.parametrize(
    ("age", "verdict"),
    [("20 minutes", CheckVerdict.WARN), ("25 hours", CheckVerdict.FAIL), ("1 minute", CheckVerdict.OK)],
)
async def test_an_old_queued_job_is_a_problem_unless_its_queue_is_paused(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID, age: str, verdict: CheckVerdict
) -> None:
    @app.job("mill.grind")
    async def grind() -> None: ...

    await grind.enqueue()
    sql.execute(WORKER, ["busy", None])
    sql.execute(f"update duly.job_records set run_at = now() - interval '{age}'")
    assert (await examined(app))["backlog"].verdict is verdict
    sql.execute("update duly.queues set paused_at = now(), paused_by = 'a' where queue = 'q:default'")
    lines = await examined(app)
    assert lines["backlog"].verdict is CheckVerdict.OK
    assert "q:default is paused" in lines["backlog"].message


async def test_a_due_job_counts_as_queued_before_its_promotion(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID
) -> None:
    @app.job("mill.grind", schedulable=True)
    async def grind() -> None: ...

    await grind.options(scheduled_for=datetime.now(UTC) + timedelta(hours=1)).enqueue()
    assert red(await examined(app)) == set()
    sql.execute("update duly.scheduled set run_at = now() - interval '2 minutes'")
    lines = await examined(app)
    assert red(lines) == {"workers"}
    assert "1 jobs are queued in q:default" in lines["workers"].message


async def test_overdue_failure_callbacks_are_a_problem(
    app: Duly, sql: psycopg.Connection, org: uuid.UUID
) -> None:
    debt = """
        insert into duly.bridge_debts (org_id, job_id, job_type, owed_at, due_at, tries, last_error)
        values (%s, gen_random_uuid(), 'mill.grind', now() - interval '2 hours', now() + %s::interval, 3,
                'no mail')
    """
    sql.execute(debt, [org, "1 minute"])
    lines = await examined(app)
    assert lines["bridge"].verdict is CheckVerdict.WARN
    assert "keep failing, for 2:00:0" in lines["bridge"].message
    sql.execute("update duly.bridge_debts set due_at = now() - interval '10 minutes'")
    lines = await examined(app)
    assert red(lines) == {"bridge"}
    assert "mill.grind" in str(lines["bridge"].fix)
    sql.execute("update duly.bridge_debts set owed_at = now(), due_at = now()")
    assert red(await examined(app)) == set()


async def test_open_alerts_and_dead_workers_are_reported(app: Duly, sql: psycopg.Connection) -> None:
    async with working(app):
        assert red(await examined(app)) == set()
    ago = "now() - interval '6 minutes'"
    sql.execute(f"update duly.workers set heartbeat_at = {ago}, stopped_at = {ago}")
    insert(sql, "alerts", SYSTEM_ORG, kind="queue_depth", severity="warning", summary="101 jobs wait")
    lines = await examined(app)
    assert red(lines) == {"alerts"}
    assert "no worker has sent a heartbeat for 00:06:0" in lines["alerts"].message
    assert "101 jobs wait (since " in lines["alerts"].message
    sql.execute("delete from duly.workers")
    assert (await examined(app))["alerts"].verdict is CheckVerdict.WARN


async def test_a_long_transaction_is_named_and_the_fix_ends_it(
    app: Duly, fresh: FreshDatabase, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_checks, "_WARN_TRANSACTION_AGE", timedelta(0))
    with closing(psycopg.connect(fresh.direct_url, application_name="report")) as forgotten:
        forgotten.execute("select 1")
        line = (await examined(app))["transactions"]
        assert (line.verdict, "report" in line.message) == (CheckVerdict.WARN, True), line
        sql.execute(str(line.fix))
        with pytest.raises(psycopg.errors.AdminShutdown):
            forgotten.execute("select 1")
        assert (await examined(app))["transactions"].verdict is CheckVerdict.OK


async def test_a_table_without_autovacuum_and_one_full_of_dead_rows_are_named(
    app: Duly, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_checks, "_MAX_DEAD_ROWS", 10)
    sql.execute("alter table duly.released_blobs set (autovacuum_enabled = off)")
    sql.execute("insert into duly.released_blobs (blob_ref) select n::text from generate_series(1, 50) n")
    sql.execute("delete from duly.released_blobs")
    sql.execute("select pg_stat_force_next_flush()")
    sql.execute("select 1")
    line = (await examined(app))["vacuum"]
    assert line.verdict is CheckVerdict.WARN
    assert "autovacuum is off for duly.released_blobs" in line.message
    assert "duly.released_blobs has 50 dead rows" in line.message


async def test_a_full_disk_is_reported(app: Duly, monkeypatch: pytest.MonkeyPatch) -> None:
    if (await examined(app))["disk"].message.endswith("from here"):
        pytest.skip("the server of this run is on another machine")
    monkeypatch.setattr(server_checks, "_WARN_FREE_BYTES", 2**80)
    assert (await examined(app))["disk"].verdict is CheckVerdict.WARN
    monkeypatch.setattr(server_checks, "_FAIL_FREE_BYTES", 2**80)
    assert (await examined(app))["disk"].verdict is CheckVerdict.FAIL


def test_replication_slots_and_archiving_that_retain_wal_are_problems() -> None:
    def slot(**facts: Any) -> list[bool]:
        row = {"slot": "copy", "active": True, "wal_status": "reserved", "bytes": 0, **facts}
        return [one.fails for one in server_checks._slot_problems([row])]

    assert slot() == slot(active=False) == []
    assert slot(bytes=2 * 2**30) == slot(wal_status="lost") == [False]
    assert slot(bytes=20 * 2**30, active=False) == [True]

    def archive(**facts: Any) -> list[bool]:
        row = {"failing": True, "segment": "0001", "since": timedelta(minutes=1), **facts}
        return [one.fails for one in server_checks._archiver_problems([row])]

    assert archive(failing=False) == []
    assert archive() == [False]
    assert archive(since=None) == archive(since=timedelta(hours=2)) == [True]


def test_rows_that_should_have_been_frozen_are_a_problem() -> None:
    def frozen(age: int) -> list[bool]:
        row = {"relation": "duly.ledger", "age": age, "max_age": 200_000_000}
        return [one.fails for one in server_checks._freeze_problems(row)]

    assert frozen(210_000_000) == []
    assert frozen(310_000_000) == [False]
    assert frozen(1_700_000_000) == [True]


def _overlong(app: Duly) -> None:
    @app.job("docs.extract", timeout=timedelta(hours=7))
    async def extract() -> None: ...


BOTH = ("timeout of docs.extract = 7:00:00", "running_stale_after of docs.extract = 6:00:00")


async def test_inconsistent_durations_fail_one_check(app: Duly) -> None:
    _overlong(app)
    lines = await examined(app)
    assert red(lines) == {"invariants"}
    assert all(part in lines["invariants"].message for part in BOTH)
    away = Duly(database_url="postgresql://127.0.0.1:1/none")
    _overlong(away)
    assert red(await examined(away)) == {"connection", "invariants"}, (
        "the code can be read without a database"
    )


async def test_published_job_types_are_checked_without_the_code(app: Duly, fresh: FreshDatabase) -> None:
    _overlong(app)

    @app.job("docs.bridged", lifecycle=LifecyclePolicy(requires_failed_bridge=True))
    async def bridged() -> None: ...

    await app.publish()
    lines = await examined(Duly(database_url=fresh.direct_url))
    assert red(lines) == {"invariants"}
    assert all(part in lines["invariants"].message for part in BOTH)
    assert "docs.bridged" not in lines["invariants"].message, "its callbacks are in the code"
    assert "docs.bridged" in (await examined(app))["invariants"].message


async def test_a_healthy_application_is_counted(app: Duly) -> None:
    @app.job("docs.index", timeout=timedelta(seconds=3))
    async def index() -> None: ...

    lines = await examined(app)
    assert (red(lines), skipped(lines)) == (set(), set())
    assert lines["invariants"].message == "1 job types, as the code declares them"


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


def test_a_short_timeout_shortens_the_expected_runtime_unless_it_was_set(app: Duly) -> None:
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

    @app.job("docs.explicit", timeout=seconds, lifecycle=LifecyclePolicy(expected_max_runtime=seconds))
    async def explicit() -> None: ...

    assert explicit.policy.lifecycle.expected_max_runtime == seconds
    with pytest.raises(ConfigurationError, match=r"expected_max_runtime of docs\.explicit"):
        app.worker()
