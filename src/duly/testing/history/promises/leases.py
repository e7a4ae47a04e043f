"""Promises about leases and the backlog."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from duly.core.states import HELD, EventType
from duly.testing.history.checker import HistoryIndex, PromiseFindings, Row, promise

_HELD = frozenset(status.value for status in HELD)


@promise
def i17(index: HistoryIndex, findings: PromiseFindings) -> None:
    """No lease is lost without cause, outlives its end by two sweeps, or comes back; the backlog drains."""
    history = index.history
    limit = 2 * history.sweep_seconds + history.allowed_lateness
    worst: dict[UUID, float] = {}
    for observation in history.leases:
        findings.facts += 1
        worst[observation.worker_id] = max(worst.get(observation.worker_id, 0.0), observation.expired_for)
    for worker_id, expired_for in worst.items():
        if expired_for > limit:
            findings.report(
                f"the expired lease of worker {worker_id} survived for {expired_for:.1f} s",
                worker_id=worker_id,
                limit=limit,
            )
    _check_lost_workers(index, findings)
    _check_backlog(index, findings)


def _check_lost_workers(index: HistoryIndex, findings: PromiseFindings) -> None:
    history = index.history
    # The reaper that declares it lost may be delayed before its commit: until then it is not visible.
    slack = timedelta(seconds=history.allowed_lateness + history.open_seconds)
    lost: dict[str, Row] = {}
    observed_lost = {observation.worker_id for observation in history.leases if observation.lost}
    for worker in history.workers:
        findings.facts += 1
        worker_id = worker["worker_id"]
        if worker["lost_at"] is None:
            if worker_id in observed_lost:
                findings.report(f"worker {worker_id} was lost, but is no longer", worker_id=worker_id)
            continue
        lost[str(worker_id)] = worker
        if not _had_cause(worker):
            findings.report(
                f"worker {worker_id} was declared lost at {worker['lost_at']}, without cause",
                worker_id=worker_id,
                heartbeat_at=worker["heartbeat_at"],
                absent_since=worker["absent_since"],
            )
        if worker["heartbeat_at"] > worker["lost_at"] + slack:
            findings.report(
                f"worker {worker_id} was lost at {worker['lost_at']}, but a later heartbeat was accepted",
                worker_id=worker_id,
                heartbeat_at=worker["heartbeat_at"],
            )
    for event in history.events if lost else ():
        if event["event_type"] == EventType.STARTED and event["actor_id"] in lost:
            findings.facts += 1
            lost_at = lost[event["actor_id"]]["lost_at"]
            if event["occurred_at"] > lost_at + slack:
                findings.report(
                    f"worker {event['actor_id']} was lost at {lost_at}, but claimed the job later",
                    (event["org_id"], event["job_id"]),
                    event_seq=event["event_seq"],
                )


def _had_cause(worker: Row) -> bool:
    """Whether it was silent for longer than its lease or, if it was absent, than its allowed silence."""
    silent = worker["lost_at"] - worker["heartbeat_at"]
    absent = worker["absent_since"] is not None and worker["absent_since"] < worker["lost_at"]
    allowed = worker["silence"] if absent and worker["silence"] is not None else worker["lease"]
    return bool(silent > allowed)


def _check_backlog(index: HistoryIndex, findings: PromiseFindings) -> None:
    queued = set(index.history.queued)
    for job, row in index.stored_jobs:
        findings.facts += 1
        in_queue = row["job_id"] in queued
        if row["status"] in _HELD:
            findings.report(f"it is still held: {row['status']}", job.key, worker_id=row["worker_id"])
        elif in_queue and row["status"] != "queued":
            findings.report(f"it is {row['status']}, but still in a queue", job.key)
        elif row["status"] == "queued" and not in_queue:
            findings.report("it is queued, but in no queue", job.key)
        elif in_queue and not index.is_not_due(row):
            findings.report(f"it is still queued, although it was due at {row['run_at']}", job.key)
