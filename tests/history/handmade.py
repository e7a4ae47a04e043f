"""Build valid histories by hand, as a correct engine would leave them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from duly.core.states import EventType
from duly.testing.history import History, JobObservation, RecordedSubmission

ORG, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
WORKER = "11111111-1111-4111-8111-111111111111"
_HELD_BY = {"started", "progressed", "partial", "retried", "snoozed", "completed", "failed", "deadlettered"}


class RecordedJob:
    """A job that is recorded event by event, with its row."""

    def __init__(self, history: History, **changes: Any) -> None:
        self.history = history
        self.worker = WORKER
        self.at = NOON
        self.row: dict[str, Any] = {
            "org_id": ORG, "job_id": uuid.uuid4(), "job_type": "tale.tell", "status": "queued",
            "outcome": "pending", "attempt": 0, "fence": 0, "max_attempts": 3, "progress_percent": 0.0,
            "partial_count": 0, "event_seq": 0, "result_seq": 0, "run_at": NOON, "created_at": NOON,
            "scheduled_for": None, "replay_of": None, "parent_id": None, "metadata": None, "worker_id": None,
            "idempotency_key": f"key-{len(history.jobs)}", "policy": {"ledger_ttl": 604800.0}, **changes,
        }  # fmt: skip
        history.jobs.append(self.row)
        self.add("queued")

    @property
    def job_id(self) -> uuid.UUID:
        found: uuid.UUID = self.row["job_id"]
        return found

    @property
    def key(self) -> tuple[uuid.UUID, uuid.UUID]:
        return (self.row["org_id"], self.job_id)

    def add(self, event: str, status: str | None = None, **payload: Any) -> dict[str, Any]:
        """Add an event; the job then has this status."""
        self.at += SECOND
        self.row["event_seq"] += 1
        self.row["status"] = status or self.row["status"]
        by_worker = event in _HELD_BY
        row = {
            "org_id": self.row["org_id"], "job_id": self.job_id, "event_seq": self.row["event_seq"],
            "event_type": EventType(f"job.{event}").value, "status": self.row["status"],
            "attempt": self.row["fence"], "occurred_at": self.at,
            "actor_type": "worker" if by_worker else "user",
            "actor_id": self.worker if by_worker else "u1", "payload": payload or None,
        }  # fmt: skip
        self.history.events.append(row)
        return row

    def started(self) -> RecordedJob:
        self.row["fence"] += 1
        self.row["attempt"] += 1
        self.add("started", "running")
        return self

    def progressed(self, percent: float) -> RecordedJob:
        self.row["progress_percent"] = percent
        self.add("progressed", progress_percent=percent)
        return self

    def partial(self, percent: float = 0.0) -> RecordedJob:
        self.row["partial_count"] += 1
        self.row["progress_percent"] = max(percent, self.row["progress_percent"])
        seq = self._result("partial")
        self.add("partial", "partial", result_seq=seq, progress_percent=self.row["progress_percent"])
        return self

    def _result(self, kind: str) -> int:
        self.row["result_seq"] += 1
        row = {"org_id": self.row["org_id"], "job_id": self.job_id, "result_kind": kind}
        self.history.results.append({**row, "result_seq": self.row["result_seq"]})
        return int(self.row["result_seq"])

    def back(self, event: str = "retried", wait: timedelta = timedelta(0)) -> RecordedJob:
        """Return to the queue: retried, snoozed or lease_lost."""
        self.row["attempt"] -= event == "snoozed"
        self.row["run_at"] = self.at + wait
        self.add(event, "queued", run_at=self.row["run_at"].isoformat())
        self.at += wait
        return self

    def completed(self) -> RecordedJob:
        self.row |= {"outcome": "succeeded", "progress_percent": 100.0}
        self._result("final")
        self.add("completed", "completed")
        return self

    def failed(self, outcome: str = "failed") -> RecordedJob:
        self.row["outcome"] = outcome
        if outcome == "dead":
            mine = {"org_id": self.row["org_id"], "job_id": self.job_id}
            self.history.dead_letters.append({**mine, "alerted_at": self.at})
            self.history.alerts.append(mine)
            self.add("deadlettered", "failed")
        self.add("failed", "failed")
        return self

    def canceled(self) -> RecordedJob:
        self.row["outcome"] = "canceled"
        self.add("canceled", "canceled")
        return self

    def submitted(self, answer: Any = "ok", client: str = "c1") -> RecordedJob:
        """Record its submission by a client."""
        job_id = self.job_id if answer == "ok" else None
        name = self.row["idempotency_key"]
        self.history.submissions.append(
            RecordedSubmission(client, self.row["org_id"], name, "tale.tell", answer, job_id)
        )
        return self

    def observed(self, **changes: Any) -> RecordedJob:
        """Record an observation of its current state."""
        ended = self.row["status"] in ("completed", "failed", "canceled")
        as_it_is = {
            "observer": "o1", "org_id": self.row["org_id"], "job_id": self.job_id,
            "status": self.row["status"], "attempt": self.row["fence"], "event_seq": self.row["event_seq"],
            "progress_percent": self.row["progress_percent"], "visible_events": self.row["event_seq"],
            "digest": "d" if ended else "",
        }  # fmt: skip
        self.history.observations.append(JobObservation(**{**as_it_is, **changes}))
        return self


def recorded_job(history: History, **changes: Any) -> RecordedJob:
    return RecordedJob(history, **changes)
