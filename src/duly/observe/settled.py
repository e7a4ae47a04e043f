"""Counting what became of attempts, once it is written: what one statement settled is counted in one go."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import prometheus_client

from duly.model.decide import Transition
from duly.model.events import EventType
from duly.model.states import Outcome, Status
from duly.observe import metrics
from duly.observe.metrics import error_classes, job_types, queues

_Meaning = tuple[prometheus_client.Counter, tuple[str, ...]]


class Settled(NamedTuple):
    """One ending that is written."""

    job_type: str
    queue: str
    to: Transition
    attempts: int
    """That count, this one among them; 0 if it never started."""
    seconds: float | None = None
    """How long the handler ran, if it did and one knows."""


def completed(job_type: str, queue: str, seconds: Collection[float], attempts: Collection[int]) -> None:
    """So many jobs of one kind were completed: the one ending that comes by the thousand."""
    these = metrics.of_jobs(job_type, queue)
    these.succeeded.inc(len(attempts))
    these.ran.observe_all(seconds)
    these.attempts.observe_all(attempts)


def count(endings: Iterable[Settled]) -> None:
    """Endings of any kind."""
    tally: Counter[_Meaning] = Counter()
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    attempts: defaultdict[str, list[int]] = defaultdict(list)
    for one in endings:
        labels = job_types(one.job_type), queues(one.queue)
        tally.update((metric, (*labels, *more)) for metric, more in _meaning(one.to))
        if one.seconds is not None:
            seconds[labels].append(one.seconds)
        if one.to.status.terminal and one.attempts:
            attempts[labels[0]].append(one.attempts)
    for (metric, said), n in tally.items():
        metric.labels(*said).inc(n)
    for labels, values in seconds.items():
        metrics.JOBS_DURATION.labels(*labels).observe_all(values)
    for job_type, spent in attempts.items():
        metrics.JOBS_ATTEMPTS.labels(job_type).observe_all(spent)


def _meaning(to: Transition) -> Iterator[_Meaning]:
    """What is counted of a transition, with the labels it adds."""
    lost = EventType.LEASE_LOST in to.events
    if lost:
        yield metrics.LEASE_LOSSES, ()
    why = (error_classes(to.error.error_class),) if to.error is not None else ()
    if to.status is Status.COMPLETED:
        yield metrics.JOBS_SUCCEEDED, ()
    elif to.status is Status.CANCELED:
        yield metrics.JOBS_CANCELED, ()
    elif to.status is Status.FAILED:
        yield metrics.JOBS_FAILED, why
        if to.outcome is Outcome.DEAD:
            yield metrics.DEADLETTER, ()
    elif to.gives_back:
        yield metrics.JOBS_RETURNED, ()
    elif not lost:
        yield metrics.JOBS_RETRIED, why
