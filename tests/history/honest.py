"""A valid history with evidence for every promise."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from duly.testing.history import (
    AuditObservation,
    Cancellation,
    Effect,
    FeedRead,
    History,
    IsolationProbe,
    LeaseObservation,
    StreamRead,
)
from tests.history.handmade import NOON, ORG, SECOND, RecordedJob, recorded_job


class Honest:
    """One job of each kind, with readers, observers and effects."""

    def __init__(self) -> None:
        self.history = history = History(
            required_effects={"tale.tell": ("outside",), "tale.bridged": ("bridge",)}
        )
        self.done = recorded_job(history).submitted().submitted(client="c2").observed()
        self.done.started().observed().progressed(40).partial(60).observed().back("lease_lost")
        self.done.started().progressed(80).observed().back(
            "snoozed", timedelta(hours=1)
        ).started().completed()
        self.done.observed().observed()
        self.dead = recorded_job(history, max_attempts=2).submitted().started().partial(10).back().started()
        self.dead.failed("dead").observed()
        self.refused = (
            recorded_job(history, job_type="tale.bridged").submitted("unknown").started().failed("blocked")
        )
        self.withdrawn = recorded_job(history).submitted().canceled()
        self.stopped = recorded_job(history).submitted().started().partial(5)
        self.stopped.add("cancel_requested")
        self.stopped.canceled()
        self.later = recorded_job(
            history, run_at=NOON + timedelta(days=1), scheduled_for=NOON + timedelta(days=1)
        )
        self.later.submitted()
        history.queued.append(self.later.job_id)
        self._effects()
        self._readers()
        self._schedule()
        absent = {"silence": 2 * SECOND, "absent_since": NOON + 3 * SECOND}
        history.workers.extend(
            [
                self.worker(),
                self.worker(lost_at=NOON + 31 * SECOND),
                self.worker(lost_at=NOON + 5 * SECOND, **absent),
            ]
        )
        history.leases.append(LeaseObservation(history.workers[1]["worker_id"], 3.0))
        history.audit.append(
            {"entry_id": uuid.uuid4(), "digest": "e", "action": "queue.paused", "org_id": ORG}
        )
        history.audit_observations.append(AuditObservation(str(history.audit[0]["entry_id"]), "e"))

    def worker(self, **changes: Any) -> dict[str, Any]:
        usual = {"lease": 30 * SECOND, "silence": None, "lost_at": None, "absent_since": None}
        return {"worker_id": uuid.uuid4(), "heartbeat_at": NOON, **usual, **changes}

    def _effects(self) -> None:
        made = self.history.effects
        made += [Effect("outside", *self.done.key, attempt, "key-0") for attempt in (1, 3)]
        made.append(Effect("transaction", *self.done.key, 3))
        made.append(Effect("bridge", *self.refused.key, 1))
        answer = {"client": "c1", "org_id": ORG, "answer": "ok"}
        self.history.cancellations.append(
            Cancellation(job_id=self.withdrawn.job_id, status="canceled", **answer)
        )
        self.history.cancellations.append(
            Cancellation(job_id=self.stopped.job_id, status="partial", **answer)
        )

    def _readers(self) -> None:
        history = self.history
        mine = [e for e in history.events if e["job_id"] == self.done.job_id]
        events = tuple((e["event_seq"], e["event_type"]) for e in mine)
        history.streams.append(StreamRead("r1", *self.done.key, events, to_the_end=True))
        history.streams.append(StreamRead("r2", *self.done.key, events[:2], to_the_end=False))
        history.probes.append(
            IsolationProbe(ORG, "GET /jobs/<id>", "404 no job <id>", "404 no job <id>", (ORG,))
        )

    def _schedule(self) -> None:
        history, self.schedule_id = self.history, uuid.uuid4()
        minute = timedelta(minutes=1)
        self.ticked = recorded_job(
            history,
            idempotency_key=f"schedule:{self.schedule_id}:2026-11-15T12:01:00Z",
            metadata={"schedule_id": str(self.schedule_id), "tick_at": "2026-11-15T12:01:00Z"},
        ).started().completed()  # fmt: skip
        history.effects.append(Effect("outside", *self.ticked.key, 1, "key-t"))
        history.schedules.append(
            {
                "org_id": ORG, "schedule_id": self.schedule_id, "name": "nightly", "cron": "* * * * *",
                "timezone": "UTC", "created_at": NOON, "last_tick_at": NOON + 2 * minute,
            }
        )  # fmt: skip
        for at, job_id in ((NOON + minute, self.ticked.job_id), (NOON + 2 * minute, None)):
            tick = {"org_id": ORG, "schedule_id": self.schedule_id, "tick_at": at, "job_id": job_id}
            history.ticks.append(tick)
        everything = tuple((e["job_id"], e["event_seq"]) for e in history.events)
        history.feeds.append(FeedRead("f1", ORG, everything))

    def event(self, job: RecordedJob, event_type: str) -> dict[str, Any]:
        """Return the last event of this type of a job."""
        return [
            e
            for e in self.history.events
            if e["job_id"] == job.job_id and e["event_type"] == f"job.{event_type}"
        ][-1]
