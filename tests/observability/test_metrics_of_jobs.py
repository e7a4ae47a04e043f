"""Metrics of jobs agree with the database."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import psycopg

from duly import Actor, Cancel, Context, Duly, Fail, Snooze
from duly.features.schedules.scheduler import Scheduler
from tests.observability.metric_samples import current_samples, sum_samples
from tests.worker.working import (
    RETRY_AT_ONCE,
    TWO_ATTEMPTS,
    claim_and_vanish,
    lose_all_workers,
    seconds,
    silent_worker,
    working,
)

ANNA = Actor.operator("anna")
EVENTS = {
    "jobs_enqueued_total": "queued",
    "jobs_started_total": "started",
    "jobs_succeeded_total": "completed",
    "jobs_failed_total": "failed",
    "deadletter_total": "deadlettered",
    "duly_jobs_retried_total": "retried",
    "duly_jobs_returned_total": "snoozed",
    "duly_jobs_canceled_total": "canceled",
    "duly_lease_losses_total": "lease_lost",
}


def declare(app: Duly, tag: str) -> list[Any]:
    """Declare job types for every outcome, with names that no other test uses."""
    tries: Counter[tuple[str, int]] = Counter()

    @app.job(f"{tag}.well", queue="q:exports")
    async def well(n: int) -> int:
        return n

    @app.job(f"{tag}.bound")
    async def bound(ctx: Context, n: int) -> None:
        async with ctx.transaction() as conn:
            await conn.execute("select 1")

    @app.job(f"{tag}.flaky", retry=RETRY_AT_ONCE)
    async def flaky(n: int) -> None:
        tries["flaky", n] += 1
        if tries["flaky", n] == 1:
            raise ConnectionError("once")

    @app.job(f"{tag}.dies", retry=TWO_ATTEMPTS)
    async def dies(n: int) -> None:
        raise OSError("always")

    @app.job(f"{tag}.fails")
    async def fails(n: int) -> Fail:
        return Fail("no")

    @app.job(f"{tag}.breaks", never_retry=[LookupError])
    async def breaks(n: int) -> None:
        raise KeyError(n)

    @app.job(f"{tag}.snoozes")
    async def snoozes(n: int) -> Snooze | None:
        tries["snoozes", n] += 1
        return Snooze(0.001) if tries["snoozes", n] == 1 else None

    @app.job(f"{tag}.stops")
    async def stops(n: int) -> Cancel:
        return Cancel("enough")

    return [well, bound, flaky, dies, fails, breaks, snoozes, stops]


def count_events(sql: psycopg.Connection[Any], tag: str) -> Counter[tuple[str, str, str]]:
    """Count the events by event type, job type and queue."""
    rows = sql.execute(
        "select e.event_type, r.job_type, r.queue, count(*) from duly.all_events e "
        "join duly.job_records r using (org_id, job_id) where r.job_type like %s group by 1, 2, 3",
        [f"{tag}.%"],
    ).fetchall()
    return Counter(
        {(str(event).removeprefix("job."), job_type, queue): n for event, job_type, queue, n in rows}
    )


async def test_settled_attempts_are_counted_exactly(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    tag = f"t{uuid.uuid4().hex[:8]}"
    job_types = declare(app, tag)
    calls = [job_type.call(n) for job_type in job_types for n in range(7)]
    handles = await app.enqueue_many(calls)
    await app.enqueue_many(calls[:9])  # duplicates are not counted
    async with working(app, slots=10):
        for handle in handles:
            await handle.wait(60)
        [rerun] = [await app.dead_letters.replay(acting, handles[21].job_id, ANNA, "again")]
        await rerun.wait(60)
    counted, event_counts = current_samples(), count_events(sql, tag)
    for name, event in EVENTS.items():
        for job_type in job_types:
            labels = {"job_type": job_type.name, "queue": job_type.policy.queue}
            count = sum_samples(counted, name, **labels)
            assert count == event_counts[event, job_type.name, job_type.policy.queue], (name, labels)
            assert sum_samples(counted, name, job_type=job_type.name) == count
    rows = sql.execute(
        "select job_type, s.error_class, count(*) from duly.job_records "
        "join duly.job_states s using (org_id, job_id) where status = 'failed' group by 1, 2"
    ).fetchall()
    assert {str(error_class) for _, error_class, _ in rows} == {"OSError", "KeyError", "Fail"}
    for job_type, error_class, n in rows:
        assert sum_samples(counted, "jobs_failed_total", job_type=job_type, error_class=error_class) == n
    check_histograms(sql, counted, [job_type.name for job_type in job_types])
    check_queue_minutes(sql, event_counts)


def check_histograms(sql: psycopg.Connection[Any], counted: Any, job_types: list[str]) -> None:
    """Check that histograms have one wait per start, one duration per attempt and one count per ended job."""
    for job_type in job_types:
        ended, spent = sql.execute(
            "select count(*), sum(s.attempt - s.returned) from duly.job_records r "
            "cross join lateral duly.state_of(r.org_id, r.job_id) s where r.job_type = %s",
            [job_type],
        ).fetchone() or (0, 0)
        assert sum_samples(counted, "jobs_attempts_histogram_count", job_type=job_type) == ended
        assert sum_samples(counted, "jobs_attempts_histogram_sum", job_type=job_type) == spent
        started = sum_samples(counted, "jobs_started_total", job_type=job_type)
        assert sum_samples(counted, "duly_jobs_wait_seconds_count", job_type=job_type) == started
        assert sum_samples(counted, "jobs_duration_seconds_count", job_type=job_type) == started
        assert 0 < sum_samples(counted, "duly_jobs_wait_seconds_sum", job_type=job_type) < 60 * started


def check_queue_minutes(sql: psycopg.Connection[Any], event_counts: Counter[tuple[str, str, str]]) -> None:
    """Check that the per-minute figures of each queue agree with the events."""
    names = ("started", "completed", "failed", "retried", "canceled")
    sums = ", ".join(f"sum({name})" for name in names)
    buckets = "(select sum(n) from unnest(wait_counts) n), (select sum(n) from unnest(run_counts) n)"
    rows = sql.execute(
        f"select queue, {sums}, sum(w), sum(r), bool_and(run_seconds > 0) from (select *, {buckets} "
        "from duly.queue_minutes) q(a, queue, c, started, completed, failed, retried, canceled, run_seconds, "
        "e, f, g, h, w, r) group by queue"
    ).fetchall()
    assert {row[0] for row in rows} == {"q:default", "q:exports"}
    for queue, *counts, waits, runs, ran in rows:
        expected = [
            sum(n for (event, _, of), n in event_counts.items() if (event, of) == (name, queue))
            for name in names
        ]
        assert (counts, waits, runs, ran) == (expected, counts[0], counts[0], True)


async def test_a_lost_attempt_is_counted_by_the_process_that_takes_it_over(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    names = [f"t{uuid.uuid4().hex[:8]}.{word}" for word in ("again", "last")]

    async def nothing() -> None: ...

    for name, losses in zip(names, (1, 2), strict=True):
        handle = await app.job(name, retry=TWO_ATTEMPTS)(nothing).enqueue()
        for _ in range(losses):
            await claim_and_vanish(app, handle.job_id)
            await lose_all_workers(app, sql)
        sql.execute("truncate duly.ready")
    counted = current_samples()
    again, last = names
    assert [
        sum_samples(counted, "duly_lease_losses_total", job_type=job_type) for job_type in (again, last)
    ] == [1, 2]
    assert [
        sum_samples(counted, "duly_jobs_retried_total", job_type=job_type) for job_type in (again, last)
    ] == [0, 0]
    assert sum_samples(counted, "jobs_failed_total", job_type=last, error_class="none") == 1
    assert sum_samples(counted, "deadletter_total", job_type=last) == 1
    assert sum_samples(counted, "jobs_attempts_histogram_sum", job_type=last) == 2


async def test_a_late_outcome_is_counted_only_as_fenced(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    name = f"t{uuid.uuid4().hex[:8]}.late"

    @app.job(name, retry=RETRY_AT_ONCE)
    async def late() -> None:
        await lose_all_workers(app, sql)

    async with silent_worker(app, sql) as worker:
        await late.enqueue()
        await worker.loop_events.wait("lost")
    counted = current_samples()
    assert sum_samples(counted, "duly_jobs_fenced_total", job_type=name) == 1
    assert sum_samples(counted, "jobs_started_total", job_type=name) == 1
    assert sum_samples(counted, "duly_lease_losses_total", job_type=name) == 1
    assert sum_samples(counted, "jobs_succeeded_total", job_type=name) == 0
    assert sum_samples(counted, "jobs_duration_seconds_count", job_type=name) == 0


async def test_jobs_of_schedules_and_operators_are_counted(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    name = f"t{uuid.uuid4().hex[:8]}.tick"

    @app.job(name, schedulable=True)
    async def tick() -> None: ...

    await app.schedules.create(org, "often", cron="* * * * *", job_type=name, actor=ANNA, reason="so")
    await app.schedules.run_now(org, "often", ANNA, "now")
    assert sum_samples(current_samples(), "jobs_enqueued_total", job_type=name) == 1
    sql.execute("update duly.schedules set counted_until = now() - interval '2 min', next_tick_at = now()")
    while await Scheduler(app).once() == seconds(0):
        pass
    written = sql.execute("select from duly.job_records").rowcount
    assert sum_samples(current_samples(), "jobs_enqueued_total", job_type=name) == written > 1
