"""Checks of the work: partitions, clocks, workers, backlog, failure callbacks, alerts and policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg

from duly.core.errors import StoreUnavailable
from duly.core.invariants import violations
from duly.core.job import SYSTEM_ORG
from duly.core.policy import DEAD_LETTER_QUEUE, JobPolicy, LifecyclePolicy, parse_stored_policy
from duly.features.alerts.models import Severity
from duly.features.alerts.thresholds import Thresholds
from duly.features.doctor import store
from duly.features.doctor.models import CheckOutcome, CheckProblem, result_of, skipped
from duly.features.doctor.store import Row
from duly.features.doctor.target import Target
from duly.features.queues import service as queues
from duly.features.queues.models import QueueStats, WorkerSnapshot, WorkerState

_MAX_COUNT = 1_000
_MAX_CHECKED_JOBS = 20
_DEAD_STATES = (WorkerState.SILENT, WorkerState.LOST)
_WARN_CLOCK_OFFSET, _FAIL_CLOCK_OFFSET = timedelta(seconds=5), timedelta(seconds=30)
_WARN_QUEUE_AGE = timedelta(minutes=15)
_PROMOTION_GRACE = timedelta(minutes=1)
_FAIL_CALLBACK_OVERDUE, _WARN_CALLBACK_AGE = timedelta(minutes=5), timedelta(hours=1)
_CREATE_PARTITIONS = (
    "a worker creates them within the hour; at once, in psql: "
    "set role duly_engine; select duly.ensure_partitions()"
)


async def check_partitions(target: Target) -> CheckOutcome:
    """Check that the current, the next and the default partitions exist."""
    expected = await target.read_as_engine("list_partitions")
    last = max(row["starts_at"] for row in expected if row["starts_at"])
    return result_of(
        (_missing_partition(row) for row in expected if not row["present"]),
        f"{len(expected)} partitions, the last for {last.astimezone(UTC):%Y-%m-%d}",
    )


def _missing_partition(row: Row) -> CheckProblem:
    name, parent = f"duly.{row['partition']}", f"duly.{row['parent']}"
    create_default = (
        f"as duly_owner: create table {name} partition of {parent} default; "
        f"select duly.lock_partition('{row['partition']}')"
    )
    fix = create_default if row["is_default"] else _CREATE_PARTITIONS
    return CheckProblem(f"{name} is missing", fix, fails=row["urgent"])


async def check_clocks(target: Target) -> CheckOutcome:
    """Check that the clocks of this machine and of the workers agree with the database."""
    before = datetime.now(UTC)
    [row] = await target.read_as_engine("read_clock")
    after = datetime.now(UTC)
    # However long the statement took, the local clock is off by at least this.
    offset = max(before - row["now"], timedelta(0)) + min(after - row["now"], timedelta(0))
    workers = await target.read_as_engine("list_worker_clocks")
    clocks = [("this machine", "this machine", offset)]
    clocks += [
        (f"the worker {w['name']}", w["host"], w["clock_offset"]) for w in workers if w["clock_offset"]
    ]
    return result_of(
        (problem for clock in clocks for problem in _clock_problems(*clock)),
        f"this machine and {len(workers)} workers are within {_WARN_CLOCK_OFFSET.seconds} s of the database",
    )


def _clock_problems(owner: str, host: str, offset: timedelta) -> Iterator[CheckProblem]:
    if abs(offset) > _WARN_CLOCK_OFFSET:
        direction = "ahead of" if offset > timedelta(0) else "behind"
        yield CheckProblem(
            f"the clock of {owner} is {_rounded(abs(offset))} {direction} the database's",
            f"set the clock of {host} by NTP (chronyc tracking, timedatectl)",
            fails=abs(offset) > _FAIL_CLOCK_OFFSET,
        )


async def check_workers(target: Target) -> CheckOutcome:
    """Check that every queue with queued jobs, unless paused, has a worker, and no dead worker holds jobs."""
    stats, known = await _read_queues(target)
    alive = [worker for worker in known if worker.state is WorkerState.WORKING]
    served = {queue for worker in alive for queue in worker.queues}
    queued = {q.queue: q.waiting.count for q in stats if q.queue != DEAD_LETTER_QUEUE}
    for row in await _overdue_jobs(target, stats):
        queued[row["queue"]] = queued.get(row["queue"], 0) + row["jobs"]
    needed = {q.queue for q in stats if not q.paused_at and queued.get(q.queue)}
    problems = [
        CheckProblem(
            f"{queued[queue]} jobs are queued in {queue}, and no live worker serves it",
            f"duly worker --app ... --queues {queue}",
        )
        for queue in sorted(needed - served)
    ]
    problems += [_dead_worker(worker) for worker in known if worker.running and worker.state in _DEAD_STATES]
    return result_of(problems, f"{len(alive)} alive; {len(needed)} queues have queued jobs")


def _dead_worker(worker: WorkerSnapshot) -> CheckProblem:
    return CheckProblem(
        f"{worker.running} jobs are held by {worker.name}, silent since {_utc(worker.heartbeat_at)}",
        "a worker with maintenance takes them over within seconds; else: duly reconcile",
    )


async def check_backlog(target: Target) -> CheckOutcome:
    """Check that no job is queued for long, paused queues aside."""
    stats, _ = await _read_queues(target)
    ages = {q.queue: q.oldest_waiting_age for q in stats if q.oldest_waiting_age and not q.paused_at}
    for row in await _overdue_jobs(target, stats):
        ages[row["queue"]] = max(row["late"], ages.get(row["queue"], row["late"]))
    paused = [f"{q.queue} is paused" for q in stats if q.paused_at]
    oldest = f"the oldest job is queued for {_rounded(max(ages.values()))}" if ages else "no job is queued"
    return result_of(
        (_old_job(queue, age) for queue, age in sorted(ages.items()) if age > _WARN_QUEUE_AGE),
        "; ".join([oldest, *paused]),
    )


def _old_job(queue: str, age: timedelta) -> CheckProblem:
    return CheckProblem(
        f"the oldest job in {queue} is queued for {_rounded(age)}",
        f"add workers for {queue}, or check its limits: duly limits list",
        fails=age > LifecyclePolicy().queued_stale_after,
    )


async def _overdue_jobs(target: Target, stats: Sequence[QueueStats]) -> list[Row]:
    """Return the due jobs that no worker has promoted, by queue, paused queues aside."""
    paused = {q.queue for q in stats if q.paused_at}
    rows = await target.read_as_engine("count_overdue_jobs", grace=_PROMOTION_GRACE)
    return [row for row in rows if row["queue"] not in paused]


async def _read_queues(target: Target) -> tuple[Sequence[QueueStats], Sequence[WorkerSnapshot]]:
    async with store.read_only(await target.conn(), as_engine=True) as conn:
        stats = await queues.read_stats(conn, max_count=_MAX_COUNT, max_heads=_MAX_COUNT)
        workers = await queues.list_workers(conn, limit=_MAX_COUNT)
    return stats, workers


async def check_alerts(target: Target) -> CheckOutcome:
    """Check that no alert of the installation is open, and that a worker is alive: a dead one fires none."""
    alerts = await target.read_as_engine(
        "list_alerts", system_org=SYSTEM_ORG, max_silence=Thresholds().no_worker
    )
    return result_of(
        (
            CheckProblem(
                f"{row['summary']} (since {_utc(row['fired_at'])})",
                "duly alerts list; see docs/operate/alerts.md",
                fails=row["severity"] == Severity.CRITICAL,
            )
            for row in alerts
        ),
        "none of the installation is open",
    )


async def check_failure_callbacks(target: Target) -> CheckOutcome:
    """Check that failure callbacks of jobs are called."""
    callbacks = await target.read_as_engine(
        "count_overdue_callbacks", max_overdue=_FAIL_CALLBACK_OVERDUE, max_age=_WARN_CALLBACK_AGE
    )
    return result_of(map(_overdue_callbacks, callbacks), "no callback is overdue")


def _overdue_callbacks(row: Row) -> CheckProblem:
    job_type, count, age = row["job_type"], row["callbacks"], _rounded(row["age"])
    if row["overdue"]:
        return CheckProblem(
            f"{count} callbacks of {job_type} are due for {age}, and no process calls them",
            f"start a worker with maintenance whose app declares {job_type}",
        )
    message = f"{count} callbacks of {job_type} keep failing, for {age}: {row['last_error']}"
    return CheckProblem(message, f"correct on_failed or on_dead of {job_type}", fails=False)


async def check_rows(target: Target) -> CheckOutcome:
    """Check that the newest rows of jobs keep the rules that no constraint checks."""
    broken = await target.read_as_engine("list_broken_rows", limit=_MAX_CHECKED_JOBS)
    return result_of(
        (
            CheckProblem(
                f"job {row['job_id']} of org {row['org_id']}: {row['rule']}",
                "Duly never writes this: look for other writers, and restore the rows from a backup",
            )
            for row in broken
        ),
        f"the newest {_MAX_CHECKED_JOBS} jobs of up to a hundred orgs are consistent",
    )


async def check_invariants(target: Target) -> CheckOutcome:
    """Check that the durations of job types, workers and retention are consistent."""
    policies, conditions = dict(target.declared_policies), target.settings.conditions()
    message = f"{len(policies)} job types, as the code declares them"
    if not policies:
        conditions = replace(conditions, with_callbacks=None)
        published = await _published_policies(target)
        policies = published or {}
        message = f"{len(policies)} job types, as published; to check the code, use --app"
        if published is None and not violations({}, conditions):
            return skipped("there is neither code nor a published job type: use --app")
    return result_of((CheckProblem(str(one), one.fix) for one in violations(policies, conditions)), message)


async def _published_policies(target: Target) -> dict[str, JobPolicy] | None:
    """Return the policies in the database; None if they cannot be read."""
    try:
        rows = await target.read_as_engine("list_job_types")
    except (psycopg.Error, StoreUnavailable):
        return None
    return {row["job_type"]: parse_stored_policy(row["policy"]) for row in rows}


def _rounded(age: timedelta) -> timedelta:
    return timedelta(seconds=round(age.total_seconds()))


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
