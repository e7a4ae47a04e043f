"""Alerts: what somebody should look at, told from figures. The same figures give the same alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

from duly.core.job import SYSTEM_ORG
from duly.core.policy import CRITICAL_QUEUE, DEAD_LETTER_QUEUE

INSTALLATION = "installation"
"""The target of what concerns all of it."""


class Kind(StrEnum):
    """What an alert is about."""

    QUEUE_DEPTH = "queue_depth"
    OLDEST_AGE = "oldest_age"
    DEAD_RATE = "dead_rate"
    NO_WORKER = "no_worker"
    STALE_RUNS = "stale_runs"
    RELAY_LAG = "relay_lag"
    WEBHOOK_FAILING = "webhook_failing"
    DEAD_LETTER = "dead_letter"


class Severity(StrEnum):
    """How bad it is."""

    WARNING = "warning"
    CRITICAL = "critical"


WAITS: Mapping[str, timedelta] = MappingProxyType(
    {
        CRITICAL_QUEUE: timedelta(seconds=30),
        "q:default": timedelta(minutes=5),
        "q:notifications": timedelta(minutes=5),
    }
)
"""How long a job may wait in some queues."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is still all right. A queue may have its own."""

    queue_depth: int = 100
    """Jobs that could start, in one queue."""
    wait: timedelta = timedelta(minutes=15)
    """How long a job may wait that could start."""
    waits: Mapping[str, timedelta] = field(default_factory=lambda: WAITS)
    """The same by queue."""
    dead_per_hour: int = 10
    no_worker: timedelta = timedelta(minutes=5)
    """How long there may be no living worker."""
    relay_lag: timedelta = timedelta(minutes=1)
    """How late events may be passed on."""


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One queue."""

    queue: str
    waiting: int = 0
    oldest_age: timedelta | None = None
    paused: bool = False
    alert_depth: int | None = None
    """Its own threshold, if it has one."""
    alert_wait: timedelta | None = None


@dataclass(frozen=True, slots=True)
class EndpointFigures:
    """A webhook that does not reach its receiver."""

    org_id: UUID
    endpoint_id: UUID
    host: str
    failures: int
    given_up: bool
    """Whether it was disabled for that."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What there is at one moment."""

    queues: tuple[QueueFigures, ...] = ()
    dead: Mapping[str, int] = field(default_factory=dict)
    """Jobs that died within an hour, by queue."""
    workers: int = 1
    """Living ones."""
    silence: timedelta | None = None
    """How long ago one was heard of; None if there never was one."""
    stale: int = 0
    """Jobs that could not be believed when those who put that right should have come."""
    relay_lag: timedelta = timedelta(0)
    endpoints: tuple[EndpointFigures, ...] = ()


@dataclass(frozen=True, slots=True)
class Firing:
    """Something that is wrong now."""

    kind: Kind
    target: str
    severity: Severity
    summary: str
    measured: float
    threshold: float
    detail: Mapping[str, Any] = field(default_factory=dict)
    org_id: UUID = SYSTEM_ORG


def firing(figures: Figures, limits: Thresholds) -> list[Firing]:
    """Everything that is wrong by these figures, each kind and target once."""
    queues = [queue for queue in figures.queues if queue.queue != DEAD_LETTER_QUEUE]
    return [
        *(found for queue in queues for found in _queue(queue, limits)),
        *_dead(figures, limits),
        *no_worker(figures, limits.no_worker),
        *_stale(figures),
        *_lag(figures, limits),
        *map(_endpoint, figures.endpoints),
    ]


def _queue(queue: QueueFigures, limits: Thresholds) -> Iterator[Firing]:
    depth = queue.alert_depth or limits.queue_depth
    if queue.waiting > depth:
        said = f"{queue.waiting:,} jobs wait in {queue.queue}, more than {depth:,}"
        yield Firing(Kind.QUEUE_DEPTH, queue.queue, Severity.WARNING, said, queue.waiting, depth)
    wait, age = queue.alert_wait or limits.waits.get(queue.queue, limits.wait), queue.oldest_age
    # Whoever has paused a queue knows that its jobs wait.
    if age is not None and age > wait and not queue.paused:
        said = f"a job in {queue.queue} has waited for {_long(age)}, longer than {_long(wait)}"
        seconds = age.total_seconds(), wait.total_seconds()
        yield Firing(Kind.OLDEST_AGE, queue.queue, Severity.CRITICAL, said, *seconds)


def _dead(figures: Figures, limits: Thresholds) -> Iterator[Firing]:
    n = sum(figures.dead.values())
    if n > limits.dead_per_hour:
        said = f"{n:,} jobs have died within an hour, more than {limits.dead_per_hour:,}"
        yield _of_all(Kind.DEAD_RATE, said, n, limits.dead_per_hour, queues=dict(figures.dead))


def no_worker(figures: Figures, patience: timedelta) -> Iterator[Firing]:
    """Nobody works. Where nobody ever did, only jobs that wait tell that somebody should."""
    ages = [queue.oldest_age for queue in figures.queues if queue.oldest_age is not None]
    silence = max(ages, default=None) if figures.silence is None else figures.silence
    if not figures.workers and silence is not None and silence > patience:
        said = f"no worker was heard of for {_long(silence)}"
        yield _of_all(Kind.NO_WORKER, said, silence.total_seconds(), patience.total_seconds())


def _stale(figures: Figures) -> Iterator[Firing]:
    if figures.stale:
        said = f"{figures.stale:,} jobs can no longer be believed, and nobody puts them right"
        yield _of_all(Kind.STALE_RUNS, said, figures.stale, 0)


def _lag(figures: Figures, limits: Thresholds) -> Iterator[Firing]:
    lag, most = figures.relay_lag, limits.relay_lag
    if lag > most:
        said = f"events are passed on {_long(lag)} late, more than {_long(most)}"
        seconds = lag.total_seconds(), most.total_seconds()
        yield Firing(Kind.RELAY_LAG, INSTALLATION, Severity.WARNING, said, *seconds)


def _endpoint(one: EndpointFigures) -> Firing:
    state = "was disabled" if one.given_up else "fails"
    failures = f"{one.failures:,} failure{'s' * (one.failures != 1)}"
    said = f"the webhook at {one.host} {state}, after {failures}"
    severity = Severity.CRITICAL if one.given_up else Severity.WARNING
    target = str(one.endpoint_id)
    return Firing(
        Kind.WEBHOOK_FAILING, target, severity, said, one.failures, 0, {"host": one.host}, one.org_id
    )


def _of_all(kind: Kind, said: str, measured: float, threshold: float, **detail: Any) -> Firing:
    return Firing(kind, INSTALLATION, Severity.CRITICAL, said, measured, threshold, detail)


def _long(span: timedelta) -> str:
    return str(timedelta(seconds=round(span.total_seconds())))
