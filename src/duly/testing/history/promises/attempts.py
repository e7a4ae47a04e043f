"""Promises about attempts: fencing, their maximum number, when they start, and cancellation."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from duly.core.states import EventType
from duly.testing.history.checker import HistoryIndex, JobHistory, Key, PromiseFindings, Row, promise

_STARTED, _SNOOZED = EventType.STARTED.value, EventType.SNOOZED.value
_EVENTS_OF_HOLDER = frozenset(
    event.value
    for event in (
        EventType.PROGRESSED,
        EventType.PARTIAL,
        EventType.RETRIED,
        EventType.SNOOZED,
        EventType.COMPLETED,
        EventType.DEADLETTERED,
        EventType.FAILED,
    )
)
"""Events that a worker writes only about jobs it holds."""


@promise
def i6(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Attempts strictly increase, and no write of an older attempt is accepted."""
    for job in index.jobs.values():
        _check_fence(findings, job)
    highest: dict[tuple[str, Key], int] = {}
    for observation in index.history.observations:
        findings.facts += 1
        key = (observation.org_id, observation.job_id)
        if observation.attempt < highest.get((observation.observer, key), 0):
            findings.report("a later observation shows an older attempt", key, observer=observation.observer)
        highest[observation.observer, key] = observation.attempt
    for effect in index.history.effects:
        job = index.job((effect.org_id, effect.job_id))
        if effect.kind == "transaction" and job.row is not None and job.status == "completed":
            findings.facts += 1
            if effect.attempt != job.row["fence"]:
                last = job.row["fence"]
                findings.report(
                    f"attempt {effect.attempt} committed its effect, and attempt {last} was the last",
                    job.key,
                )


def _check_fence(findings: PromiseFindings, job: JobHistory) -> None:
    fence, worker = 0, None
    for event in job.events:
        findings.facts += 1
        event_type, attempt = event["event_type"], event["attempt"]
        if event_type == _STARTED:
            if attempt != fence + 1:
                findings.report(
                    f"attempt {attempt} started after attempt {fence}",
                    job.key,
                    event_seq=event["event_seq"],
                )
            fence, worker = attempt, event["actor_id"]
        elif attempt != fence:
            findings.report(
                f"{event_type} of attempt {attempt} was accepted in attempt {fence}",
                job.key,
                event_seq=event["event_seq"],
                actor=event["actor_id"],
            )
        elif (
            event_type in _EVENTS_OF_HOLDER
            and event["actor_type"] == "worker"
            and event["actor_id"] != worker
        ):
            findings.report(
                f"{event_type} was written by a worker that did not hold attempt {fence}",
                job.key,
                event_seq=event["event_seq"],
                actor=event["actor_id"],
                holder=worker,
            )
    if job.row is not None and job.row["fence"] != fence:
        findings.report(f"its row has attempt {job.row['fence']}, its events at {fence}", job.key)


@promise
def i8(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Attempts never exceed the maximum, and crashed ones count.

    An attempt that was given back (a snooze, a drain) does not count. A cancel may meet an attempt that is
    being given back: then the row counts one less than the events.
    """
    for job, row in index.stored_jobs:
        started = given_back = 0
        for event in job.events:
            given_back += event["event_type"] == _SNOOZED
            if event["event_type"] == _STARTED:
                findings.facts += 1
                started += 1
                if started - given_back > row["max_attempts"]:
                    findings.report(
                        f"attempt {started - given_back} of {row['max_attempts']} started",
                        job.key,
                        event_seq=event["event_seq"],
                    )
        spent, may_lack = started - given_back, row["status"] == "canceled"
        if started and not spent - may_lack <= row["attempt"] <= spent:
            findings.report(f"its row counts {row['attempt']} attempts, its events {spent}", job.key)


@promise
def i9(index: HistoryIndex, findings: PromiseFindings) -> None:
    """No attempt starts before its run_at, by the database's clock."""
    slack = timedelta(seconds=index.history.open_seconds)
    for job, row in index.stored_jobs:
        run_at: datetime = row["scheduled_for"] or row["created_at"]
        for event in job.events:
            if event["event_type"] == _STARTED:
                findings.facts += 1
                if event["occurred_at"] + slack < run_at:
                    findings.report(
                        f"it started at {event['occurred_at']}, before its run_at {run_at}",
                        job.key,
                        event_seq=event["event_seq"],
                    )
            else:
                run_at = _run_at(event) or run_at


def _run_at(event: Row) -> datetime | None:
    run_at = (event["payload"] or {}).get("run_at")
    return datetime.fromisoformat(run_at) if run_at else None


@promise
def i18(index: HistoryIndex, findings: PromiseFindings) -> None:
    """A job canceled while queued never starts; a job with a cancel request never starts again."""
    effects: dict[Key, list[int]] = defaultdict(list)
    for effect in index.history.effects:
        if effect.kind != "bridge":
            effects[effect.org_id, effect.job_id].append(effect.attempt)
    for job in index.jobs.values():
        _check_stays_canceled(findings, job, effects.get(job.key, []))
    for request in index.history.cancellations:
        if request.answer == "ok" and request.status == "canceled":
            findings.facts += 1
            job = index.job((request.org_id, request.job_id))
            if job.status != "canceled":
                findings.report(
                    f"the answer to client {request.client} was canceled, but it is {job.status}", job.key
                )


def _check_stays_canceled(findings: PromiseFindings, job: JobHistory, attempts: list[int]) -> None:
    before, stopped = "", ""
    for event in job.events:
        event_type = event["event_type"]
        if event_type == EventType.CANCEL_REQUESTED or (
            event_type == EventType.CANCELED and before == "queued"
        ):
            findings.facts += 1
            stopped = event_type
            late = [attempt for attempt in attempts if attempt > event["attempt"]]
            if late:
                findings.report(f"it had effects after {stopped}", job.key, attempts=late)
        elif event_type == _STARTED and stopped:
            findings.report(
                f"attempt {event['attempt']} started after {stopped}",
                job.key,
                event_seq=event["event_seq"],
            )
        before = event["status"]
