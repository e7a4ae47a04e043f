"""Every statement that changes a job, run on a job in every status: only legal transitions succeed."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import duly
from duly import Duly, Status
from duly.core.decide import JobState, decide
from duly.core.outcome import AttemptOutcome, Canceled, Completed, ErrorInfo, Failed, Lost, Retried, Snoozed
from duly.core.policy import RetryPolicy
from duly.core.states import HELD, TERMINAL_EVENT, TRANSITIONS, Outcome, Trigger, sources
from duly.db.database import Database
from duly.db.statements import all_statements, statement, statement_sources
from duly.worker import claim as claims
from duly.worker import settle_store as work
from duly.worker.settle_store import ProgressUpdate
from tests.db.job_under_test import WORKER, JobUnderTest
from tests.worker.working import dump_job_tables

PACKAGE = Path(duly.__file__).parent
ERROR = ErrorInfo("boom", "it broke", "ValueError")


Verb = Callable[[JobUnderTest], Awaitable[object]]

VERBS: dict[tuple[str, Trigger], Verb] = {
    ("claim", Trigger.CLAIM): lambda s: s.claim(),
    ("claim_open", Trigger.CLAIM): lambda s: s.claim(gates=False),
    ("claim_named", Trigger.CLAIM): lambda s: s.claim_named(),
    ("cancel", Trigger.CANCEL): lambda s: s.cancel(),
    ("fail_waiting", Trigger.RECONCILE): lambda s: s.reconcile(),
    ("store_chunk", Trigger.CHUNK): lambda s: s.chunk(),
    ("complete", Trigger.FINISH): lambda s: s.complete(),
    ("complete_plain", Trigger.FINISH): lambda s: s.complete_plain(),
    ("settle", Trigger.FINISH): lambda s: s.settle(Completed({"ok": True})),
    ("settle", Trigger.FAIL): lambda s: s.settle(Failed(ERROR)),
    ("settle", Trigger.RETRY): lambda s: s.settle(Retried(ERROR)),
    ("settle", Trigger.GIVE_BACK): lambda s: s.settle(Snoozed(timedelta(hours=1))),
    ("settle", Trigger.LOSE_LEASE): lambda s: s.settle(Lost()),
    ("settle", Trigger.CANCEL): lambda s: s.settle(Canceled("worker", "asked to")),
}

ENDINGS = ("complete", "complete_plain", "settle")

SITUATIONS: dict[str, tuple[Status, list[Verb]]] = {
    "queued, new": (Status.QUEUED, []),
    "queued again": (Status.QUEUED, [lambda s: s.claim(), lambda s: s.settle(Retried(ERROR))]),
    "queued for later": (
        Status.QUEUED,
        [lambda s: s.claim(), lambda s: s.settle(Snoozed(timedelta(hours=1)))],
    ),
    "running": (Status.RUNNING, [lambda s: s.claim()]),
    "running, plain": (Status.RUNNING, [lambda s: s.claim(gates=False, plain=True)]),
    "running, left the plain path": (
        Status.RUNNING,
        [lambda s: s.claim(gates=False, plain=True), lambda s: s.leave_plain_path()],
    ),
    "completed, plain": (
        Status.COMPLETED,
        [lambda s: s.claim(gates=False, plain=True), lambda s: s.complete_plain()],
    ),
    "partial": (Status.PARTIAL, [lambda s: s.claim(), lambda s: s.chunk()]),
    "completed": (Status.COMPLETED, [lambda s: s.claim(), lambda s: s.settle(Completed({"ok": True}))]),
    "failed": (Status.FAILED, [lambda s: s.claim(), lambda s: s.settle(Failed(ERROR))]),
    "dead": (Status.FAILED, [lambda s: s.claim(), lambda s: s.settle(Retried(ERROR), attempts=1)]),
    "canceled": (Status.CANCELED, [lambda s: s.cancel()]),
    "canceled, claimed": (
        Status.CANCELED,
        [lambda s: s.claim(), lambda s: s.settle(Canceled("user", "stop"))],
    ),
}


@pytest.fixture
async def job(app: Duly, database: Database, acting: uuid.UUID) -> JobUnderTest:
    @app.job("step.take")
    def take(n: int) -> None: ...

    handle = await take.enqueue(1)
    held = claims.ClaimedJob(
        org_id=acting,
        job_id=handle.job_id,
        attempt=1,
        returned=0,
        progress_percent=0.0,
        partial_count=0,
        checkpoint=None,
        job_type="step.take",
        queue="q:default",
        priority=0,
        project_id=None,
        subject_id=None,
        actor_type="user",
        actor_id="u1",
        request_id="r",
        correlation_id="r",
        traceparent=None,
        run_identity_hash=None,
        payload="{}",
        payload_ref=None,
        policy="{}",
        metadata=None,
        claim_id=uuid.uuid4(),
    )
    return JobUnderTest(database, acting, handle.job_id, held)


def status(sql: psycopg.Connection) -> tuple[str, str]:
    row = sql.execute("select status, outcome from duly.jobs").fetchone()
    assert row
    return row[0], row[1]


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("verb", VERBS, ids=lambda v: f"{v[0]}:{v[1]}")
async def test_only_legal_transitions_succeed(
    job: JobUnderTest, sql: psycopg.Connection, situation: str, verb: tuple[str, Trigger]
) -> None:
    start, steps = SITUATIONS[situation]
    for step in steps:
        assert await step(job)
    assert status(sql)[0] == start
    before = dump_job_tables(sql)
    name, trigger = verb
    reachable = (name not in ENDINGS or start in HELD) and (
        trigger is not Trigger.CLAIM or situation != "queued for later"
    )
    if name == "claim_named":
        reachable = situation == "queued, new"  # notifications name no others
    if name in ("complete", "complete_plain") and start is Status.RUNNING:
        # Each is fenced by what the other one does not have: a state row, or a claim of the plain path.
        reachable = (name == "complete_plain") == (situation == "running, plain")
    elif name == "complete_plain":
        reachable = False
    legal = (start, trigger) in TRANSITIONS and reachable
    if name == "cancel" and start in HELD:
        await _assert_cancel_is_a_request(job, sql, start)
        return
    changed = await VERBS[verb](job)
    if not legal:
        assert not changed or name == "cancel", "only cancel is idempotent: it returns its first answer again"
        assert dump_job_tables(sql) == before
        return
    assert changed
    assert status(sql)[0] == TRANSITIONS[start, trigger]
    _assert_consistent(sql, job)


async def _assert_cancel_is_a_request(job: JobUnderTest, sql: psycopg.Connection, start: Status) -> None:
    assert not await job.cancel()
    assert status(sql) == (start, Outcome.PENDING)
    _assert_consistent(sql, job)


def _assert_consistent(sql: psycopg.Connection, job: JobUnderTest) -> None:
    events = sql.execute(
        "select event_seq, event_type, status from duly.job_events order by event_seq"
    ).fetchall()
    assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1))
    current, outcome = status(sql)
    terminal = [e for _, e, _ in events if e in TERMINAL_EVENT.values()]
    assert terminal == ([TERMINAL_EVENT[Status(current)]] if Status(current).terminal else [])
    assert not terminal or events[-1][1] == terminal[0]
    waiting = sql.execute(
        "select (select count(*) from duly.ready) + (select count(*) from duly.scheduled)"
    ).fetchone()
    assert waiting == (1 if current == "queued" else 0,)
    finals = sql.execute("select count(*) from duly.job_results where result_kind = 'final'").fetchone()
    assert finals == (1 if current == "completed" else 0,)
    dead = sql.execute("select count(*) from duly.dead_letters").fetchone()
    assert dead == (1 if outcome == "dead" else 0,)


@pytest.mark.parametrize(
    "verb", [v for v in VERBS if v[0] in (*ENDINGS, "store_chunk")], ids=lambda v: f"{v[0]}:{v[1]}"
)
async def test_a_stale_attempt_changes_nothing(
    job: JobUnderTest, sql: psycopg.Connection, verb: tuple[str, Trigger]
) -> None:
    await job.claim()
    await job.settle(Lost())
    [again] = await job.claim()
    assert again.attempt == 2
    before = dump_job_tables(sql)
    assert not await VERBS[verb](job)
    assert dump_job_tables(sql) == before


async def test_progress_never_falls_and_each_change_has_its_event(
    job: JobUnderTest, sql: psycopg.Connection
) -> None:
    [held] = await job.claim()
    async with job.database.engine() as conn:
        moved = [
            bool(await work.write_progress(conn, [ProgressUpdate(held, p)])) for p in (10, 30, 20, 30, 150)
        ]
    assert moved == [True, True, False, False, True]
    rows = sql.execute(
        "select payload_json from duly.job_events where event_type = 'job.progressed' order by event_seq"
    ).fetchall()
    assert [row[0]["progress_percent"] for row in rows] == [10, 30, 100]
    stale = held._replace(attempt=0)
    async with job.database.engine() as conn:
        assert not await work.write_progress(conn, [ProgressUpdate(stale, 100)])


async def test_attempts_are_counted_in_the_claim_and_given_back_by_a_snooze(
    job: JobUnderTest, sql: psycopg.Connection
) -> None:
    await job.claim()
    assert sql.execute("select attempt, fence from duly.jobs").fetchone() == (1, 1)
    await job.settle(Snoozed(timedelta(0)))
    assert sql.execute("select attempt, fence from duly.jobs").fetchone() == (0, 1)
    await job.claim()
    assert sql.execute("select attempt, fence from duly.jobs").fetchone() == (1, 2)


async def test_a_promoted_job_becomes_runnable_by_the_databases_clock(
    job: JobUnderTest, sql: psycopg.Connection
) -> None:
    await job.claim()
    await job.settle(Snoozed(timedelta(hours=1)))
    async with job.database.engine() as conn:
        assert await claims.promote_due(conn, limit=10) == 0
        await conn.execute("select set_config('duly.now', (now() + interval '2 hours')::text, true)")
        assert await claims.promote_due(conn, limit=10) == 1
    assert await job.claim()


async def test_a_stale_attempt_in_a_batch_does_not_affect_the_others(
    job: JobUnderTest, sql: psycopg.Connection
) -> None:
    await job.claim()
    await job.settle(Lost())
    [again] = await job.claim()
    completion = decide(
        JobState(Status.RUNNING, 2), Completed({"ok": True}), RetryPolicy(), datetime.now(UTC), 0.0
    )
    async with job.database.engine() as conn:
        settled = await work.settle(
            conn, [(job.held, completion), (again, completion)], actor_type="worker", actor_id="w"
        )
    assert settled == {(job.org, job.job_id, 2)}
    _assert_consistent(sql, job)


async def test_a_stale_attempt_among_completions_is_reported_and_the_others_are_written(
    job: JobUnderTest, sql: psycopg.Connection
) -> None:
    await job.claim()
    await job.settle(Lost())
    [again] = await job.claim()
    async with job.database.engine() as conn:
        lost = await work.complete(conn, [(job.held, 1), (again, 2)], worker_id=WORKER)
    assert lost == {job.held.key}
    assert sql.execute("select status, result from duly.jobs").fetchone() == ("completed", 2)
    _assert_consistent(sql, job)


async def test_complete_and_settle_write_the_same_rows(job: JobUnderTest, sql: psycopg.Connection) -> None:
    written: list[Any] = []
    for end in (job.complete, lambda: job.settle(Completed({"ok": True}))):
        await job.claim()
        assert await end()
        written.append(_written_rows(sql))
        sql.execute("truncate duly.job_states, duly.result_snapshots, duly.claims")
        sql.execute("delete from duly.event_log where event_seq > 1")
        sql.execute("insert into duly.ready select queue, org_id, 0, job_id from duly.job_records")
    assert written[0] == written[1]


def _written_rows(sql: psycopg.Connection) -> list[Any]:
    """Return every row that the end of a job writes, without times and transaction ids."""
    tables: list[Any] = []
    for table in ("job_states", "event_log", "result_snapshots", "ready", "scheduled", "active_runs"):
        rows = sql.execute(f"select to_jsonb(t) from duly.{table} t order by 1").fetchall()
        columns = [name for name in (rows[0][0] if rows else ()) if not name.endswith(("_at", "_xid"))]
        tables.append([{name: row[0][name] for name in columns} for row in rows])
    return tables


@pytest.mark.parametrize("ending", [Retried(ERROR), Snoozed(timedelta(hours=1)), Lost()])
async def test_a_cancel_requested_after_the_decision_is_applied(
    job: JobUnderTest, sql: psycopg.Connection, ending: AttemptOutcome
) -> None:
    await job.claim()
    await job.cancel()
    assert await job.settle(ending), "decided by a worker without knowledge of the cancel"
    assert status(sql) == ("canceled", "canceled")
    assert sql.execute("select canceled_by, cancel_reason from duly.jobs").fetchone() == ("user", "enough")
    _assert_consistent(sql, job)


def _headers() -> dict[str, str]:
    return {name: text.split("\nwith", 1)[0] for name, text in statement_sources().items()}


def test_statement_headers_name_the_triggers_of_the_transition_table() -> None:
    named = {
        (name.removeprefix("jobs/"), Trigger(word))
        for name, header in _headers().items()
        if (
            line := re.search(
                r"^-- Transitions?: (.*?)(?:, from|[.;]|, (?:queued|none|running))", header, re.M
            )
        )
        for word in re.findall(r"[a-z_]+", line[1])
        if word in set(Trigger)
    }
    assert named == {*VERBS, ("enqueue", Trigger.ENQUEUE)}


def test_every_trigger_of_the_transition_table_has_a_statement() -> None:
    assert {trigger for _, trigger in TRANSITIONS} == {t for _, t in VERBS} | {Trigger.ENQUEUE}
    assert sources(Trigger.RECONCILE) == {Status.QUEUED}


@pytest.mark.parametrize("name", all_statements())
def test_every_statement_has_a_header(name: str) -> None:
    noun, _, verb = name.partition("/")
    header = _headers()[name]
    shared = any(f"-- name: {verb}\n" in path.read_text() for path in PACKAGE.rglob(f"queries/{noun}.sql"))
    assert header.startswith("-- " if shared else "-- Purpose: ")
    assert statement(name).count(";") == 0, "one statement at a time"
