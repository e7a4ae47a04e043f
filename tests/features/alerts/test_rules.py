"""From figures to alerts."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from duly.core.job import SYSTEM_ORG
from duly.features.alerts.rules import EndpointFigures, Figures, QueueFigures, Severity, Thresholds, firing

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
ORG, ENDPOINT = uuid.uuid4(), uuid.uuid4()


def queue(name: str = "q:default", waiting: int = 0, age: timedelta | None = None, **more: object) -> Figures:
    return Figures(queues=(QueueFigures(name, waiting, age, **more),))  # type: ignore[arg-type]


CASES: dict[str, tuple[Figures, list[tuple[str, str]]]] = {
    "nothing": (Figures(), []),
    "a hundred wait": (queue(waiting=100), []),
    "one more waits": (queue(waiting=101), [("queue_depth", "q:default")]),
    "a queue may have its own depth": (queue(waiting=101, alert_depth=101), []),
    "and a smaller one": (queue(waiting=6, alert_depth=5), [("queue_depth", "q:default")]),
    "half a minute is enough where it is critical": (
        queue("q:critical", 1, 31 * SECOND),
        [("oldest_age", "q:critical")],
    ),
    "but not elsewhere": (queue(age=31 * SECOND), []),
    "five minutes are": (queue(age=5 * MINUTE + SECOND), [("oldest_age", "q:default")]),
    "a queue that nobody named has fifteen": (queue("q:video", age=15 * MINUTE), []),
    "and no more": (queue("q:video", age=16 * MINUTE), [("oldest_age", "q:video")]),
    "unless it says otherwise": (queue("q:video", age=16 * MINUTE, alert_wait=20 * MINUTE), []),
    "a pause is somebody's wish": (queue(age=20 * MINUTE, paused=True), []),
    "dead letters rest": (queue("q:deadletter", 5_000, 900 * MINUTE), []),
    "ten have died": (Figures(dead={"q:default": 4, "q:exports": 6}), []),
    "eleven have": (Figures(dead={"q:default": 5, "q:exports": 6}), [("dead_rate", "installation")]),
    "a worker lives": (Figures(workers=1, silence=10 * MINUTE), []),
    "the last went just now": (Figures(workers=0, silence=5 * MINUTE), []),
    "the last went long ago": (
        Figures(workers=0, silence=6 * MINUTE),
        [("no_worker", "installation")],
    ),
    "nobody ever came, and nothing waits": (Figures(workers=0), []),
    "somebody cannot be believed": (Figures(stale=1), [("stale_runs", "installation")]),
    "events are a minute late": (Figures(relay_lag=61 * SECOND), [("relay_lag", "installation")]),
    "a webhook fails": (
        Figures(endpoints=(EndpointFigures(ORG, ENDPOINT, "a.example", 7, given_up=False),)),
        [("webhook_failing", str(ENDPOINT))],
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_what_is_wrong_is_told_by_the_figures(what: str) -> None:
    figures, expected = CASES[what]
    assert [(one.kind, one.target) for one in firing(figures, Thresholds())] == expected


def test_where_nobody_ever_worked_a_job_that_waits_tells_that_somebody_should() -> None:
    figures = Figures(queues=(QueueFigures("q:slow", 1, 6 * MINUTE),), workers=0)
    [found] = firing(figures, Thresholds())
    assert (found.kind, found.severity, found.measured, found.threshold) == (
        "no_worker",
        "critical",
        360,
        300,
    )


def test_an_alert_says_what_was_measured_and_whose_it_is() -> None:
    [depth] = firing(queue(waiting=1_234), Thresholds())
    assert (depth.org_id, depth.severity, depth.measured, depth.threshold) == (
        SYSTEM_ORG,
        "warning",
        1_234,
        100,
    )
    assert depth.summary == "1,234 jobs wait in q:default, more than 100"
    gone = EndpointFigures(ORG, ENDPOINT, "a.example", 1_000, given_up=True)
    [webhook] = firing(Figures(endpoints=(gone,)), Thresholds())
    assert (webhook.org_id, webhook.severity) == (ORG, Severity.CRITICAL)
    assert webhook.summary == "the webhook at a.example was disabled, after 1,000 failures"
    [dead] = firing(Figures(dead={"q:default": 11}), Thresholds())
    assert dead.detail == {"queues": {"q:default": 11}}
