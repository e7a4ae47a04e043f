"""The reconciler: stale jobs are failed once, with their evidence; no other job changes."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Context, Duly, Failure, Handle, LifecyclePolicy, RetryPolicy
from duly.maintenance.reconciler import Reconciler
from duly.observability.metrics import RECONCILIATIONS
from tests.journeys.consistency import check_consistency
from tests.worker.working import (
    claim_and_vanish,
    dump_job_tables,
    event_types,
    lose_all_workers,
    seconds,
    settle_attempts,
    until,
    working,
)

HOUR = timedelta(hours=1)
STRICT = LifecyclePolicy(queued_stale_after=HOUR, running_stale_after=2 * HOUR)


def declare(app: Duly, name: str = "step.take", **options: Any) -> Any:
    @app.job(name, lifecycle=options.pop("lifecycle", STRICT), **options)
    async def take(n: int = 0) -> int:
        return n

    return take


def age(sql: psycopg.Connection[Any], job_id: uuid.UUID, hours: float) -> uuid.UUID:
    """As if all that happened to this waiting job had happened so long ago; its new id."""
    old = sql.execute("select duly.uuid7_floor(now() - %s)", [hours * HOUR]).fetchone()[0]  # type: ignore[index]
    new = uuid.UUID(int=old.int | (job_id.int & (1 << 62) - 1) | 2 << 62)
    sql.execute("select duly.ensure_partitions()")
    waiting = ("ready", "scheduled", "active_runs")
    for table in ("job_records", "job_states", "event_log", "key_ledger", *waiting):
        sql.execute(f"update duly.{table} set job_id = %s where job_id = %s", [new, job_id])
    sql.execute(
        "update duly.event_batches set first_job = %(new)s, job_ids = array[%(new)s] "
        "where first_job = %(old)s",
        {"new": new, "old": job_id},
    )
    sql.execute("update duly.job_records set run_at = now() - %s where job_id = %s", [hours * HOUR, new])
    return new


def since(sql: psycopg.Connection[Any], job_id: uuid.UUID, hours: float) -> None:
    """As if its attempt had begun so long ago."""
    values = [hours * HOUR, job_id]
    sql.execute("update duly.job_states set attempt_started_at = now() - %s where job_id = %s", values)
    sql.execute("update duly.claims set claimed_at = now() - %s where %s = any (job_ids)", values)


async def test_a_stale_queued_job_is_failed_with_a_record(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    old, young = [await take.enqueue(n) for n in (1, 2)]
    handle = app.handle(age(sql, old.job_id, 1.01))
    app.handle(age(sql, young.job_id, 0.98))
    [finding] = await Reconciler(app).sweep()
    assert (finding.job_id, finding.healed) == (handle.job_id, True)
    job = await handle.status()
    assert (job.status, job.outcome, job.error_code) == ("failed", "failed", "run.stale_queued")
    assert job.retryable
    assert job.reconciled
    [record] = job.reconciliations
    assert record.kind == "stale_queued"
    assert record.source == "scheduled_reconciler"
    assert record.status == "failed"
    assert float(record.evidence["age_seconds"]) > record.evidence["threshold_seconds"] == 3600
    assert [entry["reason_code"] for entry in job.failure_summary] == ["run.stale_queued"]
    assert await event_types(handle) == ["queued", "reconciled", "failed"]
    assert sql.execute("select count(*) from duly.ready").fetchone() == (1,)
    check_consistency(sql)


async def test_repeated_and_concurrent_sweeps_change_nothing_more(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    for n in range(20):
        age(sql, (await take.enqueue(n)).job_id, 2)
    counter = RECONCILIATIONS.labels(kind="stale_queued", reason_code="run.stale_queued")
    before = counter._value.get()
    found = await asyncio.gather(*(Reconciler(app).sweep() for _ in range(3)))
    assert sum(len(findings) for findings in found) == 20
    assert counter._value.get() - before == 20
    seen = dump_job_tables(sql)
    assert await Reconciler(app).sweep() == []
    assert dump_job_tables(sql) == seen
    check_consistency(sql)


async def test_a_dry_run_finds_the_same_and_changes_nothing(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    job_id = age(sql, (await take.enqueue(1)).job_id, 2)
    seen = dump_job_tables(sql)
    [finding] = (await app.reconcile(dry_run=True)).findings
    assert (finding.job_id, finding.healed, finding.record.reason_code) == (job_id, False, "run.stale_queued")
    assert (finding.status, finding.becomes) == ("queued", "failed")
    assert dump_job_tables(sql) == seen


async def test_a_paused_queue_keeps_its_jobs(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    age(sql, (await take.enqueue(1)).job_id, 2)
    why: dict[str, Any] = {"actor": Actor.operator("ops"), "reason": "because"}
    await app.queues.pause("q:default", **why)
    assert await Reconciler(app).sweep() == []
    await app.queues.resume("q:default", **why)
    assert await Reconciler(app).sweep() == [], "it waits anew"
    sql.execute("update duly.queues set resumed_at = now() - interval '2 hours'")
    assert len(await Reconciler(app).sweep()) == 1


async def test_a_paused_org_keeps_its_jobs(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    age(sql, (await take.enqueue(1)).job_id, 2)
    why: dict[str, Any] = {"actor": Actor.operator("ops"), "reason": "because"}
    await app.limits.pause(org_id=acting, **why)
    assert await Reconciler(app).sweep() == []
    await app.limits.resume(org_id=acting, **why)
    assert await Reconciler(app).sweep() == []
    sql.execute("update duly.gates set resumed_at = now() - interval '2 hours'")
    assert len(await Reconciler(app).sweep()) == 1


@pytest.mark.parametrize("switch", ["covered", "supports_reconciliation"])
async def test_an_exempt_job_type_is_not_reconciled(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], switch: str
) -> None:
    take = declare(app, lifecycle=STRICT.model_copy(update={switch: False}))
    age(sql, (await take.enqueue(1)).job_id, 2)
    assert await Reconciler(app).sweep() == []


async def test_the_age_of_a_queued_job_counts_from_run_at(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job(
        "step.again",
        lifecycle=STRICT,
        retry=RetryPolicy(max_attempts=3, delays=(timedelta(minutes=30),)),
        schedulable=True,
    )
    async def again(n: int) -> None:
        raise RuntimeError("later")

    retried = await again.enqueue(1)
    await settle_attempts(app)
    delayed = await again.options(scheduled_for=datetime.now(UTC) + timedelta(minutes=30)).enqueue(2)
    jobs = [age(sql, handle.job_id, 5) for handle in (retried, delayed)]
    now = datetime.now(UTC)
    for table in ("job_records", "job_states", "scheduled"):
        sql.execute(f"update duly.{table} set run_at = %s", [now + HOUR / 2])
    assert await Reconciler(app).sweep() == []
    for table in ("job_records", "job_states", "scheduled"):
        sql.execute(f"update duly.{table} set run_at = %s", [now - 1.02 * HOUR])
    found = await Reconciler(app).sweep()
    assert {finding.job_id for finding in found} == set(jobs)
    check_consistency(sql)


async def test_an_attempt_beyond_its_horizon_is_failed_although_its_worker_lives(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    stopped = asyncio.Event()

    @app.job("step.hang", lifecycle=STRICT)
    async def hang(ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    handle = await hang.enqueue()
    async with working(app, heartbeat=seconds(0.05)) as worker:
        await worker.loop_events.wait("started")
        assert await Reconciler(app).sweep() == []
        since(sql, handle.job_id, 2.01)
        assert await Reconciler(app).sweep() == [], "its worker has a minute to end it"
        since(sql, handle.job_id, 2.02)
        [finding] = await Reconciler(app).sweep()
        assert finding.record.evidence["claimed"] is True
        await stopped.wait()
        await worker.loop_events.wait("settled", 1)
        job = await handle.status()
    assert (job.status, job.error_code) == ("failed", "run.stale_running")
    assert job.reconciliations[0].evidence["worker_id"] == str(worker.worker_id)
    assert await event_types(handle) == ["queued", "started", "reconciled", "failed"]
    check_consistency(sql)


@pytest.mark.parametrize("orphaned_by", ["its claim is gone", "both are gone"])
async def test_an_orphaned_job_is_failed_when_its_time_is_over(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], orphaned_by: str
) -> None:
    take = declare(app)
    handle = await take.enqueue(1)
    await claim_and_vanish(app, handle.job_id)
    since(sql, handle.job_id, 2.01)
    sql.execute("delete from duly.claims")
    if orphaned_by == "both are gone":
        sql.execute("delete from duly.workers")
    [finding] = await Reconciler(app).sweep()
    job = await handle.status()
    assert (job.status, job.error_code, job.attempt) == ("failed", "run.stale_running", 1)
    assert finding.record.evidence["claimed"] is False
    assert await Reconciler(app).sweep() == []


async def test_jobs_of_a_lost_worker_are_left_to_the_reaper(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    handle = await take.enqueue(1)
    await claim_and_vanish(app, handle.job_id)
    since(sql, handle.job_id, 9)
    sql.execute("update duly.workers set heartbeat_at = now() - interval '9 hours'")
    assert await Reconciler(app).sweep() == []
    [finding] = (await app.reconcile(dry_run=True)).findings
    assert (finding.record.kind, finding.becomes, finding.healed) == ("lost_lease", "queued", False)
    [finding] = (await app.reconcile()).findings
    assert finding.healed
    assert (await handle.status()).status == "queued"
    assert (await app.reconcile()).findings == []


async def test_a_cancel_request_is_kept(app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]) -> None:
    take = declare(app)
    handle = await take.enqueue(1)
    await claim_and_vanish(app, handle.job_id)
    await handle.cancel("enough")
    since(sql, handle.job_id, 2.01)
    sql.execute("delete from duly.claims")
    await Reconciler(app).sweep()
    job = await handle.status()
    assert (job.status, job.cancel_reason) == ("canceled", "enough")
    assert [record.status for record in job.reconciliations] == ["canceled"]
    assert await event_types(handle) == ["queued", "started", "cancel_requested", "reconciled", "canceled"]


@pytest.mark.parametrize("attempts", [0, 1])
async def test_a_job_that_is_in_no_queue_is_failed(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], attempts: int
) -> None:
    @app.job("step.flaky", retry=RetryPolicy(max_attempts=3, delays=(HOUR,)))
    async def flaky(n: int) -> None:
        raise RuntimeError("later")

    handle, other = [await flaky.enqueue(n) for n in (1, 2)]
    if attempts:
        await settle_attempts(app, 2)
    sql.execute("delete from duly.ready where job_id = %s", [handle.job_id])
    sql.execute("delete from duly.scheduled where job_id = %s", [handle.job_id])
    found = await Reconciler(app).sweep()
    assert [(f.job_id, f.record.kind) for f in found] == [(handle.job_id, "queue_failure_bridge")]
    job = await handle.status()
    assert (job.status, job.error_code, job.attempt) == ("failed", "run.queue_failure_bridge", attempts)
    assert (await other.status()).status == "queued"
    check_consistency(sql)


async def test_a_run_identity_is_free_again_after_the_reconciliation(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    first = await take.options(run_identity="only").enqueue(1)
    age(sql, first.job_id, 2)
    await Reconciler(app).sweep()
    assert (await take.options(run_identity="only").enqueue(2)).created


async def test_the_failure_callback_is_made_in_the_same_transaction(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    told: list[Failure] = []

    async def tell(failure: Failure, conn: Any) -> None:
        told.append(failure)

    take = declare(app, on_failed=tell)
    job_id = age(sql, (await take.enqueue(1)).job_id, 2)
    await Reconciler(app).sweep()
    assert [(one.job.job_id, one.job.error_code) for one in told] == [(job_id, "run.stale_queued")]
    assert sql.execute("select count(*) from duly.bridge_debts").fetchone() == (0,)


async def test_a_lost_lease_leaves_its_record(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    handle = await take.enqueue(1)
    worker_id = await claim_and_vanish(app, handle.job_id)
    await lose_all_workers(app, sql)
    job = await handle.status()
    assert job.status == "queued"
    [record] = job.reconciliations
    assert (record.kind, record.reason_code, record.status) == (
        "lost_lease",
        "run.infrastructure_timeout_or_abandonment",
        "queued",
    )
    assert record.evidence["worker_id"] == str(worker_id)
    assert job.failure_summary == []
    await settle_attempts(app)
    job = await handle.status()
    assert (job.status, job.reconciled, len(job.reconciliations)) == ("completed", False, 1)


async def test_ended_jobs_are_never_touched(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    handles: list[Handle[Any]] = [await take.enqueue(n) for n in range(3)]
    await handles[0].cancel("no")
    await settle_attempts(app, 2)
    sql.execute("update duly.job_states set attempt_started_at = now() - interval '9 hours'")
    sql.execute("update duly.job_records set run_at = now() - interval '9 days'")
    seen = dump_job_tables(sql)
    assert await Reconciler(app).sweep() == []
    assert dump_job_tables(sql) == seen


async def test_sweeps_are_bounded_and_reach_every_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.maintenance.reconciler._MAX_STEPS", 7)
    take = declare(app)
    handles = await app.enqueue_many([take.call(n) for n in range(30)])
    sql.execute("delete from duly.ready where job_id = %s", [max(handle.job_id for handle in handles)])
    reconciler = Reconciler(app)
    found = [len(await reconciler.sweep()) for _ in range(5)]
    assert found == [0, 0, 0, 0, 1]
    sql.execute("delete from duly.ready where job_id = %s", [min(handle.job_id for handle in handles)])
    assert [len((await app.reconcile()).findings) for _ in range(2)] == [1, 0]


async def test_one_job_that_cannot_be_reconciled_stops_no_other(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    for n in range(3):
        age(sql, (await take.enqueue(n)).job_id, 2)
    broken = sql.execute("select min(job_id::text)::uuid from duly.ready").fetchone()[0]  # type: ignore[index]
    sql.execute("insert into duly.bridge_debts values (%s, %s, 'x', now(), now())", [acting, broken])
    sql.execute(
        "update duly.job_records set policy = jsonb_set("
        "duly.policy_of(policy, policy_hash), '{lifecycle,requires_failed_bridge}', 'true')"
    )
    found = await Reconciler(app).sweep()
    assert sorted(finding.healed for finding in found) == [False, True, True]


async def test_absurd_policies_stop_no_sweep(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    take = declare(app)
    for n in range(2):
        age(sql, (await take.enqueue(n)).job_id, 2)
    odd = """update duly.job_records
             set policy = jsonb_set(duly.policy_of(policy, policy_hash), '{lifecycle,queued_stale_after}', %s)
             where job_id = (select min(job_id::text)::uuid from duly.job_records)"""
    for value in ("1e300", '"soon"', "null", "[]"):
        sql.execute(odd, [value])
        await Reconciler(app).sweep()
    assert sql.execute("select count(*) from duly.job_states where status = 'failed'").fetchone() == (1,)


async def test_the_chore_runs_beside_every_worker(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    settings = app.settings.model_copy(update={"maintenance": True, "reconcile_every": seconds(0.05)})
    async with Duly(settings) as kept:
        take = declare(kept)
        age(sql, (await take.options(org_id=acting).enqueue(1)).job_id, 2)
        async with working(kept, queues=("q:planning",)):
            await until(sql, "select count(*) = 1 from duly.job_states where status = 'failed'")
