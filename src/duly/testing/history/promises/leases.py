"""Leases, and the end of the backlog."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from duly.model.events import EventType
from duly.model.states import HELD
from duly.testing.history.book import Book, Findings, Row, promise

_HELD = frozenset(status.value for status in HELD)


@promise
def i17(book: Book, found: Findings) -> None:
    """No lease is lost without cause, survives its end for two sweeps or comes back; the backlog drains."""
    history = book.history
    longest = 2 * history.sweep_seconds + history.allowed_lateness
    worst: dict[UUID, float] = {}
    for sight in history.leases:
        found.facts += 1
        worst[sight.worker_id] = max(worst.get(sight.worker_id, 0.0), sight.expired_for)
    for worker_id, expired_for in worst.items():
        if expired_for > longest:
            found.report(
                f"the expired lease of worker {worker_id} survived for {expired_for:.1f} s",
                worker_id=worker_id,
                longest=longest,
            )
    _lost_stay_lost(book, found)
    _backlog_drains(book, found)


def _lost_stay_lost(book: Book, found: Findings) -> None:
    history = book.history
    # Whoever declares it lost may be held up before the commit: until then nobody knows.
    slack = timedelta(seconds=history.allowed_lateness + history.open_seconds)
    lost: dict[str, Row] = {}
    seen_lost = {sight.worker_id for sight in history.leases if sight.lost}
    for worker in history.workers:
        found.facts += 1
        worker_id = worker["worker_id"]
        if worker["lost_at"] is None:
            if worker_id in seen_lost:
                found.report(f"worker {worker_id} was lost, and is not any more", worker_id=worker_id)
            continue
        lost[str(worker_id)] = worker
        if not _had_cause(worker):
            found.report(
                f"worker {worker_id} was declared lost at {worker['lost_at']}, without cause",
                worker_id=worker_id,
                heartbeat_at=worker["heartbeat_at"],
                absent_since=worker["absent_since"],
            )
        if worker["heartbeat_at"] > worker["lost_at"] + slack:
            found.report(
                f"worker {worker_id} was lost at {worker['lost_at']}, and its heartbeat counted afterwards",
                worker_id=worker_id,
                heartbeat_at=worker["heartbeat_at"],
            )
    for event in history.events if lost else ():
        if event["event_type"] == EventType.STARTED and event["actor_id"] in lost:
            found.facts += 1
            lost_at = lost[event["actor_id"]]["lost_at"]
            if event["occurred_at"] > lost_at + slack:
                found.report(
                    f"worker {event['actor_id']} was lost at {lost_at}, and claimed the job afterwards",
                    (event["org_id"], event["job_id"]),
                    event_seq=event["event_seq"],
                )


def _had_cause(worker: Row) -> bool:
    """Silent for longer than its lease; or, if it was found absent, for longer than absent ones may be."""
    silent = worker["lost_at"] - worker["heartbeat_at"]
    absent = worker["absent_since"] is not None and worker["absent_since"] < worker["lost_at"]
    allowed = worker["silence"] if absent and worker["silence"] is not None else worker["lease"]
    return bool(silent > allowed)


def _backlog_drains(book: Book, found: Findings) -> None:
    waiting = set(book.history.waiting)
    for story, job in book.jobs:
        found.facts += 1
        waits = job["job_id"] in waiting
        if job["status"] in _HELD:
            found.report(f"it is still held: {job['status']}", story.key, worker_id=job["worker_id"])
        elif waits and job["status"] != "queued":
            found.report(f"it is {job['status']}, and a queue still has it", story.key)
        elif job["status"] == "queued" and not waits:
            found.report("it is queued, and no queue has it", story.key)
        elif waits and not book.waits_rightly(job):
            found.report(f"it still waits, and was to run at {job['run_at']}", story.key)
