"""Whether work can flow: room for it, workers for it, clocks that agree, and policies that can be kept."""

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
from duly.features.doctor import store as health
from duly.features.doctor.finding import Complaint, Finding, Verdict, judged, skipped
from duly.features.doctor.store import Row
from duly.features.doctor.target import Patient
from duly.features.queues import store as queues
from duly.features.queues.models import QueueStats, WorkerSnapshot, WorkerState

_MANY = 1_000
_GONE = (WorkerState.SILENT, WorkerState.LOST)
_DRIFTS, _WRONG = timedelta(seconds=5), timedelta(seconds=30)
_LONG_WAIT = timedelta(minutes=15)
_NOT_PROMOTED = timedelta(minutes=1)
_UNPAID, _LONG_OWED = timedelta(minutes=5), timedelta(hours=1)
_MAKE_THEM = (
    "a worker makes them within the hour; at once, in psql: "
    "set role duly_engine; select duly.ensure_partitions()"
)


async def partitions(patient: Patient) -> Finding:
    """The partitions of the time to come are there, and those that catch the rest."""
    expected = await patient.read_as_engine("partitions")
    last = max(row["starts_at"] for row in expected if row["starts_at"])
    return judged(
        (_missing(row) for row in expected if not row["there"]),
        f"{len(expected)} made, the last for {last.astimezone(UTC):%Y-%m-%d}",
    )


def _missing(row: Row) -> Complaint:
    name, parent = f"duly.{row['partition']}", f"duly.{row['parent']}"
    by_hand = (
        f"as duly_owner: create table {name} partition of {parent} default; "
        f"select duly.lock_partition('{row['partition']}')"
    )
    return Complaint(
        Verdict.FAIL if row["urgent"] else Verdict.WARN,
        f"{name} is missing",
        _MAKE_THEM if row["makeable"] else by_hand,
    )


async def clock(patient: Patient) -> Finding:
    """The clock of this machine and those of the workers agree with the database's."""
    before = datetime.now(UTC)
    [row] = await patient.read_as_engine("clock")
    after = datetime.now(UTC)
    # Whatever the way took, ours is off by no less than this.
    offset = max(before - row["now"], timedelta(0)) + min(after - row["now"], timedelta(0))
    workers = await patient.read_as_engine("worker_clocks")
    found = [("this machine", "this machine", offset)]
    found += [(f"the worker {w['name']}", w["host"], w["clock_offset"]) for w in workers if w["clock_offset"]]
    return judged(
        (complaint for one in found for complaint in _wrong_time(*one)),
        f"this machine and {len(workers)} workers are within {_DRIFTS.seconds} s of the database",
    )


def _wrong_time(who: str, host: str, offset: timedelta) -> Iterator[Complaint]:
    if abs(offset) > _DRIFTS:
        verdict = Verdict.FAIL if abs(offset) > _WRONG else Verdict.WARN
        way = "ahead of" if offset > timedelta(0) else "behind"
        said = f"the clock of {who} is {_rounded(abs(offset))} {way} the database's"
        yield Complaint(verdict, said, f"set the clock of {host} by NTP (chronyc tracking, timedatectl)")


async def workers(patient: Patient) -> Finding:
    """Every queue in which jobs wait has a worker, except where it is paused; no silent one holds jobs."""
    stats, known = await _queues(patient)
    living = [worker for worker in known if worker.state is WorkerState.WORKING]
    taken = {queue for worker in living for queue in worker.queues}
    waiting = {q.queue: q.waiting.count for q in stats if q.queue != DEAD_LETTER_QUEUE}
    for row in await _overdue(patient, stats):
        waiting[row["queue"]] = waiting.get(row["queue"], 0) + row["jobs"]
    needed = {q.queue for q in stats if not q.paused_at and waiting.get(q.queue)}
    complaints = [
        Complaint(
            Verdict.FAIL,
            f"{waiting[queue]} jobs wait in {queue}, and no living worker takes from it",
            f"duly worker --app ... --queues {queue}",
        )
        for queue in sorted(needed - taken)
    ]
    complaints += [_silent(worker) for worker in known if worker.running and worker.state in _GONE]
    return judged(complaints, f"{len(living)} alive; jobs wait in {len(needed)} queues")


def _silent(worker: WorkerSnapshot) -> Complaint:
    since = f"{worker.heartbeat_at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    return Complaint(
        Verdict.FAIL,
        f"{worker.running} jobs are held by {worker.name}, silent since {since}",
        "a worker with maintenance takes them over within seconds; else: duly reconcile",
    )


async def backlog(patient: Patient) -> Finding:
    """No job waits for long, except where somebody has paused the queue."""
    stats, _ = await _queues(patient)
    ages = {q.queue: q.oldest_waiting_age for q in stats if q.oldest_waiting_age and not q.paused_at}
    for row in await _overdue(patient, stats):
        ages[row["queue"]] = max(row["late"], ages.get(row["queue"], row["late"]))
    paused = [f"{q.queue} is paused" for q in stats if q.paused_at]
    oldest = f"the oldest waits for {_rounded(max(ages.values()))}" if ages else "nothing waits"
    return judged(
        (_waits(queue, age) for queue, age in sorted(ages.items()) if age > _LONG_WAIT),
        "; ".join([oldest, *paused]),
    )


async def _overdue(patient: Patient, stats: Sequence[QueueStats]) -> list[Row]:
    """Jobs that nobody made ready, paused queues aside: without a worker, nobody does."""
    paused = {q.queue for q in stats if q.paused_at}
    rows = await patient.read_as_engine("overdue", patience=_NOT_PROMOTED)
    return [row for row in rows if row["queue"] not in paused]


def _waits(queue: str, age: timedelta) -> Complaint:
    stale = age > LifecyclePolicy().queued_stale_after
    return Complaint(
        Verdict.FAIL if stale else Verdict.WARN,
        f"the oldest job in {queue} waits for {_rounded(age)}",
        f"add workers for {queue}, or see what holds it up: duly limit list",
    )


async def _queues(patient: Patient) -> tuple[Sequence[QueueStats], Sequence[WorkerSnapshot]]:
    async with health.as_engine(await patient.conn()) as conn:
        stats = await queues.read_stats(conn, max_count=_MANY, max_heads=_MANY)
        known = await queues.list_workers(conn, limit=_MANY)
    return stats, known


async def alerts(patient: Patient) -> Finding:
    """No alert of the installation is open. Whether anybody works is looked at here: else nobody may look."""
    patience = Thresholds().no_worker
    found = await patient.read_as_engine("alerts", system=SYSTEM_ORG, patience=patience)
    return judged(map(_alert, found), "none of the installation is open")


def _alert(row: Row) -> Complaint:
    verdict = Verdict.FAIL if row["severity"] == Severity.CRITICAL else Verdict.WARN
    since = f"{row['fired_at'].astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    return Complaint(
        verdict, f"{row['summary']} (since {since})", "duly alert list; see docs/operate/alerts.md"
    )


async def bridge(patient: Patient) -> Finding:
    """Callbacks that are owed to failed jobs are made."""
    found = await patient.read_as_engine("debts", patience=_UNPAID, endurance=_LONG_OWED)
    return judged(map(_owed, found), "no callback is overdue")


def _owed(row: Row) -> Complaint:
    job_type, age = row["job_type"], _rounded(row["age"])
    if row["unpaid"]:
        said = f"{row['debts']} callbacks of {job_type} are owed for {age}, and nobody makes them"
        return Complaint(Verdict.FAIL, said, f"start a worker with maintenance whose app declares {job_type}")
    said = f"{row['debts']} callbacks of {job_type} keep failing, for {age}: {row['last_error']}"
    return Complaint(Verdict.WARN, said, f"correct on_failed or on_dead of {job_type}")


async def invariants(patient: Patient) -> Finding:
    """The times of the job types, of the workers and of the retention go together."""
    policies, under = dict(patient.declared), patient.around.conditions()
    seen = f"{len(policies)} job types, as the code declares them"
    if not policies:
        under = replace(under, with_callbacks=None)
        published = await _published(patient)
        policies = published or {}
        seen = f"{len(policies)} job types, as published; the code was not seen: name it by --app"
        if published is None and not violations({}, under):
            return skipped("neither code nor published job types were seen: name the code by --app")
    found = violations(policies, under)
    return judged((Complaint(Verdict.FAIL, str(one), one.fix) for one in found), seen)


async def _published(patient: Patient) -> dict[str, JobPolicy] | None:
    """The policies that the database knows; None if it cannot be asked."""
    try:
        rows = await patient.read_as_engine("job_types")
    except (psycopg.Error, StoreUnavailable):
        return None
    return {row["job_type"]: parse_stored_policy(row["policy"]) for row in rows}


def _rounded(age: timedelta) -> timedelta:
    return timedelta(seconds=round(age.total_seconds()))
