"""Thresholds of alerts: which conditions fire, computed from measurements alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from duly.core.job import SYSTEM_ORG
from duly.core.policy import CRITICAL_QUEUE, DEAD_LETTER_QUEUE
from duly.features.alerts.models import AlertKind, Severity

INSTALLATION = "installation"
"""The target of alerts that concern the whole installation."""
QUEUE_WAITS: Mapping[str, timedelta] = MappingProxyType(
    {
        CRITICAL_QUEUE: timedelta(seconds=30),
        "q:default": timedelta(minutes=5),
        "q:notifications": timedelta(minutes=5),
    }
)
"""How long a runnable job may wait, for queues that differ from the default."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits above which alerts fire. A queue may have its own."""

    queue_depth: int = 100
    """Runnable jobs in a queue."""
    wait: timedelta = timedelta(minutes=15)
    """How long a runnable job may wait."""
    waits: Mapping[str, timedelta] = field(default_factory=lambda: QUEUE_WAITS)
    """The same by queue."""
    dead_per_hour: int = 10
    no_worker: timedelta = timedelta(minutes=5)
    """How long there may be no living worker."""
    relay_lag: timedelta = timedelta(minutes=1)
    """How late events may be relayed."""


@dataclass(frozen=True, slots=True)
class QueueMeasurement:
    """The backlog of a queue, and its own thresholds if it has any."""

    queue: str
    waiting: int = 0
    oldest_age: timedelta | None = None
    paused: bool = False
    alert_depth: int | None = None
    alert_wait: timedelta | None = None


@dataclass(frozen=True, slots=True)
class FailingEndpoint:
    """A webhook endpoint that the deliverer cannot reach."""

    org_id: UUID
    endpoint_id: UUID
    host: str
    failures: int
    disabled: bool
    """Whether Duly disabled it because of its failures."""


@dataclass(frozen=True, slots=True)
class Measurements:
    """The state of the installation at one moment."""

    queues: tuple[QueueMeasurement, ...] = ()
    dead: Mapping[str, int] = field(default_factory=dict)
    """Jobs that became dead letters within an hour, by queue."""
    workers: int = 1
    """Living workers."""
    silence: timedelta | None = None
    """Time since the last heartbeat of any worker; None if there never was a worker."""
    stale: int = 0
    """Stale jobs that the reconciler should have repaired by now."""
    relay_lag: timedelta = timedelta(0)
    endpoints: tuple[FailingEndpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Firing:
    """A condition that exceeds its threshold now."""

    kind: AlertKind
    target: str
    severity: Severity
    summary: str
    measured: float
    threshold: float
    detail: Mapping[str, Any] = field(default_factory=dict)
    org_id: UUID = SYSTEM_ORG


def find_firing(measured: Measurements, thresholds: Thresholds) -> list[Firing]:
    """Return the conditions that exceed their thresholds, each kind and target once."""
    queues = [queue for queue in measured.queues if queue.queue != DEAD_LETTER_QUEUE]
    return [
        *(firing for queue in queues for firing in _check_queue(queue, thresholds)),
        *_check_dead_rate(measured, thresholds.dead_per_hour),
        *check_workers(measured, thresholds.no_worker),
        *_check_stale(measured),
        *_check_relay(measured, thresholds.relay_lag),
        *map(_firing_endpoint, measured.endpoints),
    ]


def _check_queue(queue: QueueMeasurement, thresholds: Thresholds) -> Iterator[Firing]:
    depth = queue.alert_depth or thresholds.queue_depth
    if queue.waiting > depth:
        summary = f"{queue.waiting:,} jobs are queued in {queue.queue}, more than {depth:,}"
        yield Firing(AlertKind.QUEUE_DEPTH, queue.queue, Severity.WARNING, summary, queue.waiting, depth)
    wait, age = queue.alert_wait or thresholds.waits.get(queue.queue, thresholds.wait), queue.oldest_age
    # The operator who paused a queue knows that its jobs wait.
    if age is not None and age > wait and not queue.paused:
        summary = f"a job in {queue.queue} has waited for {_format(age)}, longer than {_format(wait)}"
        seconds = age.total_seconds(), wait.total_seconds()
        yield Firing(AlertKind.OLDEST_AGE, queue.queue, Severity.CRITICAL, summary, *seconds)


def _check_dead_rate(measured: Measurements, dead_per_hour: int) -> Iterator[Firing]:
    count = sum(measured.dead.values())
    if count > dead_per_hour:
        summary = f"{count:,} jobs became dead letters within an hour, more than {dead_per_hour:,}"
        yield _critical(AlertKind.DEAD_RATE, summary, count, dead_per_hour, queues=dict(measured.dead))


def check_workers(measured: Measurements, no_worker: timedelta) -> Iterator[Firing]:
    """Fire if no worker is alive. Where there never was one, only waiting jobs show that one is needed."""
    ages = [queue.oldest_age for queue in measured.queues if queue.oldest_age is not None]
    silence = max(ages, default=None) if measured.silence is None else measured.silence
    if not measured.workers and silence is not None and silence > no_worker:
        summary = f"no worker has been alive for {_format(silence)}"
        yield _critical(AlertKind.NO_WORKER, summary, silence.total_seconds(), no_worker.total_seconds())


def _check_stale(measured: Measurements) -> Iterator[Firing]:
    if measured.stale:
        summary = f"{measured.stale:,} jobs are stale, and the reconciler does not repair them"
        yield _critical(AlertKind.STALE_RUNS, summary, measured.stale, 0)


def _check_relay(measured: Measurements, max_lag: timedelta) -> Iterator[Firing]:
    lag = measured.relay_lag
    if lag > max_lag:
        summary = f"events are relayed {_format(lag)} late, more than {_format(max_lag)}"
        seconds = lag.total_seconds(), max_lag.total_seconds()
        yield Firing(AlertKind.RELAY_LAG, INSTALLATION, Severity.WARNING, summary, *seconds)


def _firing_endpoint(endpoint: FailingEndpoint) -> Firing:
    state = "was disabled" if endpoint.disabled else "is failing"
    failures = f"{endpoint.failures:,} failure{'s' * (endpoint.failures != 1)}"
    return Firing(
        kind=AlertKind.WEBHOOK_FAILING,
        target=str(endpoint.endpoint_id),
        severity=Severity.CRITICAL if endpoint.disabled else Severity.WARNING,
        summary=f"the webhook at {endpoint.host} {state} after {failures}",
        measured=endpoint.failures,
        threshold=0,
        detail={"host": endpoint.host},
        org_id=endpoint.org_id,
    )


def _critical(kind: AlertKind, summary: str, measured: float, threshold: float, **detail: Any) -> Firing:
    return Firing(kind, INSTALLATION, Severity.CRITICAL, summary, measured, threshold, detail)


def _format(span: timedelta) -> str:
    return str(timedelta(seconds=round(span.total_seconds())))
