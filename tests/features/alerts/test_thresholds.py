"""Thresholds: which alerts fire for which measurements."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from duly.core.job import SYSTEM_ORG
from duly.features.alerts.models import Severity
from duly.features.alerts.thresholds import (
    FailingEndpoint,
    Measurements,
    QueueMeasurement,
    Thresholds,
    find_firing,
)

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
ORG, ENDPOINT = uuid.uuid4(), uuid.uuid4()


def queue(
    name: str = "q:default", waiting: int = 0, age: timedelta | None = None, **more: object
) -> Measurements:
    return Measurements(queues=(QueueMeasurement(name, waiting, age, **more),))  # type: ignore[arg-type]


CASES: dict[str, tuple[Measurements, list[tuple[str, str]]]] = {
    "nothing": (Measurements(), []),
    "a queue at its depth threshold": (queue(waiting=100), []),
    "a queue above its depth threshold": (queue(waiting=101), [("queue_depth", "q:default")]),
    "a queue at its own depth threshold": (queue(waiting=101, alert_depth=101), []),
    "a queue above its own depth threshold": (
        queue(waiting=6, alert_depth=5),
        [("queue_depth", "q:default")],
    ),
    "a critical job waits longer than 30 s": (
        queue("q:critical", 1, 31 * SECOND),
        [("oldest_age", "q:critical")],
    ),
    "a default job waits for 31 s": (queue(age=31 * SECOND), []),
    "a default job waits longer than 5 minutes": (
        queue(age=5 * MINUTE + SECOND),
        [("oldest_age", "q:default")],
    ),
    "a job of another queue waits for 15 minutes": (queue("q:video", age=15 * MINUTE), []),
    "a job of another queue waits longer than 15 minutes": (
        queue("q:video", age=16 * MINUTE),
        [("oldest_age", "q:video")],
    ),
    "a queue with its own wait threshold": (queue("q:video", age=16 * MINUTE, alert_wait=20 * MINUTE), []),
    "a paused queue": (queue(age=20 * MINUTE, paused=True), []),
    "the dead letter queue": (queue("q:deadletter", 5_000, 900 * MINUTE), []),
    "ten dead letters": (Measurements(dead={"q:default": 4, "q:exports": 6}), []),
    "eleven dead letters": (
        Measurements(dead={"q:default": 5, "q:exports": 6}),
        [("dead_rate", "installation")],
    ),
    "a living worker": (Measurements(workers=1, silence=10 * MINUTE), []),
    "the last worker stopped 5 minutes ago": (Measurements(workers=0, silence=5 * MINUTE), []),
    "the last worker stopped longer ago": (
        Measurements(workers=0, silence=6 * MINUTE),
        [("no_worker", "installation")],
    ),
    "never a worker, and no job": (Measurements(workers=0), []),
    "a stale job": (Measurements(stale=1), [("stale_runs", "installation")]),
    "events are relayed late": (Measurements(relay_lag=61 * SECOND), [("relay_lag", "installation")]),
    "a failing webhook": (
        Measurements(endpoints=(FailingEndpoint(ORG, ENDPOINT, "a.example", 7, disabled=False),)),
        [("webhook_failing", str(ENDPOINT))],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_alert_fires_above_its_threshold(case: str) -> None:
    measured, expected = CASES[case]
    assert [(one.kind, one.target) for one in find_firing(measured, Thresholds())] == expected


def test_where_there_never_was_a_worker_a_waiting_job_fires_no_worker() -> None:
    measured = Measurements(queues=(QueueMeasurement("q:slow", 1, 6 * MINUTE),), workers=0)
    [found] = find_firing(measured, Thresholds())
    assert (found.kind, found.severity, found.measured, found.threshold) == (
        "no_worker",
        "critical",
        360,
        300,
    )


def test_an_alert_has_its_measurement_summary_and_org() -> None:
    [depth] = find_firing(queue(waiting=1_234), Thresholds())
    assert (depth.org_id, depth.severity, depth.measured, depth.threshold) == (
        SYSTEM_ORG,
        "warning",
        1_234,
        100,
    )
    assert depth.summary == "1,234 jobs are queued in q:default, more than 100"
    gone = FailingEndpoint(ORG, ENDPOINT, "a.example", 1_000, disabled=True)
    [webhook] = find_firing(Measurements(endpoints=(gone,)), Thresholds())
    assert (webhook.org_id, webhook.severity) == (ORG, Severity.CRITICAL)
    assert webhook.summary == "the webhook at a.example was disabled after 1,000 failures"
    [dead] = find_firing(Measurements(dead={"q:default": 11}), Thresholds())
    assert dead.detail == {"queues": {"q:default": 11}}
