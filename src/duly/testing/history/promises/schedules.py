"""Ticks: each is one job, or on record as missed."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from uuid import UUID

from duly.model.cron import Cron
from duly.model.errors import ContractError
from duly.testing.history.book import Book, Findings, Row, promise

_MOST = 100_000
Ticks = dict[datetime, list[Row]]


@promise
def i13(book: Book, found: Findings) -> None:
    """At most one job per schedule tick, and no tick that is neither run nor recorded as missed."""
    recorded: dict[UUID, Ticks] = defaultdict(lambda: defaultdict(list))
    for tick in book.history.ticks:
        recorded[tick["schedule_id"]][tick["tick_at"].astimezone(UTC)].append(tick)
    for schedule in book.history.schedules:
        _check_records(book, found, schedule, recorded[schedule["schedule_id"]])
        _check_calendar(book, found, schedule, recorded[schedule["schedule_id"]])
    _check_jobs(book, found, recorded)


def _check_records(book: Book, found: Findings, schedule: Row, ticks: Ticks) -> None:
    for at, rows in ticks.items():
        found.facts += 1
        if len(rows) > 1:
            found.report(
                f"the tick {at} of {schedule['name']!r} is recorded {len(rows)} times",
                org_id=schedule["org_id"],
                schedule_id=schedule["schedule_id"],
                jobs=[str(row["job_id"]) for row in rows],
            )
        for row in rows:
            if row["job_id"] is not None and book.story((row["org_id"], row["job_id"])).job is None:
                found.report(
                    f"the tick {at} of {schedule['name']!r} names a job that does not exist",
                    (row["org_id"], row["job_id"]),
                    schedule_id=schedule["schedule_id"],
                )


def _check_calendar(book: Book, found: Findings, schedule: Row, ticks: Ticks) -> None:
    """Every tick of its expression, from its making (or its last change) to its last tick."""
    until = schedule["last_tick_at"]
    try:
        times = Cron.parse(schedule["cron"], schedule["timezone"])
    except ContractError:
        return  # written by hand: it never ticks
    for at in times.due(_valid_since(book, schedule), until, _MOST) if until is not None else ():
        found.facts += 1
        if at not in ticks:
            found.report(
                f"the tick {at} of {schedule['name']!r} was neither run nor recorded as missed",
                org_id=schedule["org_id"],
                schedule_id=schedule["schedule_id"],
            )


def _valid_since(book: Book, schedule: Row) -> datetime:
    # A scheduler may have counted a little further than the time at which the change began.
    slack = timedelta(seconds=book.history.allowed_lateness)
    changes: list[datetime] = [
        entry["occurred_at"] + slack
        for entry in book.history.audit
        if entry["action"] == "schedule.updated"
        and entry["target_id"] == str(schedule["schedule_id"])
        and {"cron", "timezone"} & set(entry["detail"].get("changed", ()))
    ]
    made_at: datetime = schedule["created_at"]
    return max([made_at, *changes])


def _check_jobs(book: Book, found: Findings, recorded: dict[UUID, Ticks]) -> None:
    made: Counter[tuple[UUID, str]] = Counter()
    for story, job in book.jobs:
        said = job["metadata"] or {}
        if not job["idempotency_key"].startswith("schedule:") or "tick_at" not in said:
            continue
        found.facts += 1
        schedule_id, at = UUID(said["schedule_id"]), datetime.fromisoformat(said["tick_at"])
        made[schedule_id, said["tick_at"]] += 1
        if made[schedule_id, said["tick_at"]] > 1:
            found.report(f"a second job for the tick {at}", story.key, schedule_id=schedule_id)
        if job["job_id"] not in [row["job_id"] for row in recorded[schedule_id].get(at, [])]:
            found.report(f"the tick {at} is not on record with this job", story.key, schedule_id=schedule_id)
