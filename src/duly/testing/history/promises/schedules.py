"""Promises about schedules: each tick is one job, or recorded as missed."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from uuid import UUID

from duly.core.errors import ContractError
from duly.features.schedules.cron import Cron
from duly.testing.history.checker import HistoryIndex, PromiseFindings, Row, promise

_MAX_TICKS = 100_000
Ticks = dict[datetime, list[Row]]


@promise
def i13(index: HistoryIndex, findings: PromiseFindings) -> None:
    """At most one job per schedule tick, and no tick that is neither run nor recorded as missed."""
    recorded: dict[UUID, Ticks] = defaultdict(lambda: defaultdict(list))
    for tick in index.history.ticks:
        recorded[tick["schedule_id"]][tick["tick_at"].astimezone(UTC)].append(tick)
    for schedule in index.history.schedules:
        _check_records(index, findings, schedule, recorded[schedule["schedule_id"]])
        _check_calendar(index, findings, schedule, recorded[schedule["schedule_id"]])
    _check_jobs(index, findings, recorded)


def _check_records(index: HistoryIndex, findings: PromiseFindings, schedule: Row, ticks: Ticks) -> None:
    for at, rows in ticks.items():
        findings.facts += 1
        if len(rows) > 1:
            findings.report(
                f"the tick {at} of {schedule['name']!r} is recorded {len(rows)} times",
                org_id=schedule["org_id"],
                schedule_id=schedule["schedule_id"],
                jobs=[str(tick["job_id"]) for tick in rows],
            )
        for tick in rows:
            if tick["job_id"] is not None and index.job((tick["org_id"], tick["job_id"])).row is None:
                findings.report(
                    f"the tick {at} of {schedule['name']!r} names a job that does not exist",
                    (tick["org_id"], tick["job_id"]),
                    schedule_id=schedule["schedule_id"],
                )


def _check_calendar(index: HistoryIndex, findings: PromiseFindings, schedule: Row, ticks: Ticks) -> None:
    """Check every tick of its expression, from its creation (or its last change) to its last tick."""
    until = schedule["last_tick_at"]
    try:
        times = Cron.parse(schedule["cron"], schedule["timezone"])
    except ContractError:
        return  # written directly to the table: it never ticks
    for at in times.due(_valid_since(index, schedule), until, _MAX_TICKS) if until is not None else ():
        findings.facts += 1
        if at not in ticks:
            findings.report(
                f"the tick {at} of {schedule['name']!r} was neither run nor recorded as missed",
                org_id=schedule["org_id"],
                schedule_id=schedule["schedule_id"],
            )


def _valid_since(index: HistoryIndex, schedule: Row) -> datetime:
    # A scheduler may have computed ticks a little beyond the time at which the change began.
    slack = timedelta(seconds=index.history.allowed_lateness)
    changes: list[datetime] = [
        entry["occurred_at"] + slack
        for entry in index.history.audit
        if entry["action"] == "schedule.updated"
        and entry["target_id"] == str(schedule["schedule_id"])
        and {"cron", "timezone"} & set(entry["detail"].get("changed", ()))
    ]
    created_at: datetime = schedule["created_at"]
    return max([created_at, *changes])


def _check_jobs(index: HistoryIndex, findings: PromiseFindings, recorded: dict[UUID, Ticks]) -> None:
    jobs_per_tick: Counter[tuple[UUID, str]] = Counter()
    for job, row in index.stored_jobs:
        metadata = row["metadata"] or {}
        if not row["idempotency_key"].startswith("schedule:") or "tick_at" not in metadata:
            continue
        findings.facts += 1
        schedule_id, at = UUID(metadata["schedule_id"]), datetime.fromisoformat(metadata["tick_at"])
        jobs_per_tick[schedule_id, metadata["tick_at"]] += 1
        if jobs_per_tick[schedule_id, metadata["tick_at"]] > 1:
            findings.report(f"a second job for the tick {at}", job.key, schedule_id=schedule_id)
        if row["job_id"] not in [tick["job_id"] for tick in recorded[schedule_id].get(at, [])]:
            findings.report(f"the tick {at} is not recorded with this job", job.key, schedule_id=schedule_id)
