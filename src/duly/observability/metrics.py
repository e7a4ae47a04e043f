"""Prometheus metrics: every name with its labels, and a function for each event to count.

A counter counts facts, after the commit that made them. What only the database knows, such as the number of
queued jobs, is not counted but queried by `duly.features.metrics.service`. Labels hold few names, fixed or
capped, and never an org or an id.
"""

from __future__ import annotations

import asyncio
import collections
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from prometheus_client import Counter, Gauge, Histogram

from duly.core.decide import Transition
from duly.core.states import EventType, Outcome, Status
from duly.observability.latency_histogram import filled_buckets

OTHER = "other"
"""Stands for every name beyond the cap."""
NONE = "none"
"""Stands for an empty name: Prometheus drops empty labels."""


class CappedNames:
    """A label with at most so many names; later ones become `other`, so that callers cannot add series."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        """Return the value of the label."""
        if name in self._known:
            return name
        if not name:
            return NONE
        if len(self._known) >= self._limit:
            return OTHER
        self._known.add(name)
        return name


class FixedNames:
    """A label with fixed names; any other becomes `other`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known = frozenset(names)

    def __call__(self, name: str) -> str:
        """Return the value of the label."""
        return name if name in self._known else OTHER


class BatchHistogram(Histogram):
    """Observes a batch with one addition per bucket: a worker settles hundreds of jobs at once."""

    def observe_all(self, values: Collection[float]) -> None:
        """Observe each of the values."""
        self._sum.inc(sum(values))
        for bucket, count in filled_buckets(self._upper_bounds, values):
            self._buckets[bucket].inc(count)


job_types, queues, error_classes, channels, alert_kinds = map(CappedNames, (500, 100, 200, 20, 50))
routes = CappedNames(500)
methods = FixedNames(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))

_JOB = ("job_type", "queue")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_RESPONSE_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

JOBS_ENQUEUED = Counter("jobs_enqueued", "Enqueued jobs, without duplicates of an idempotency key.", _JOB)
JOBS_STARTED = Counter("jobs_started", "Attempts that a worker has claimed.", _JOB)
JOBS_SUCCEEDED = Counter("jobs_succeeded", "Completed jobs, partially or fully.", _JOB)
JOBS_FAILED = Counter("jobs_failed", "Finally failed jobs, including dead ones.", (*_JOB, "error_class"))
JOBS_DURATION = BatchHistogram(
    "jobs_duration_seconds", "Run time of the handler of an attempt.", _JOB, buckets=_SECONDS
)
JOBS_ATTEMPTS = BatchHistogram(
    "jobs_attempts_histogram",
    "Attempts that a job took until it ended.",
    ("job_type",),
    buckets=(1, 2, 3, 4, 5, 8, 12, 20),
)
DEADLETTER = Counter("deadletter", "Jobs that became dead letters: no attempt was left.", _JOB)

JOBS_RETRIED = Counter("duly_jobs_retried", "Failed attempts that will be repeated.", (*_JOB, "error_class"))
JOBS_RETURNED = Counter("duly_jobs_returned", "Attempts that were given back and do not count.", _JOB)
JOBS_CANCELED = Counter("duly_jobs_canceled", "Jobs that were canceled after they had started.", _JOB)
JOBS_WAIT = BatchHistogram(
    "duly_jobs_wait_seconds",
    "Time between the moment an attempt could have started (of a new job: its enqueue) and its claim.",
    _JOB,
    buckets=_SECONDS,
)
LEASE_LOSSES = Counter("duly_lease_losses", "Attempts that lost workers held.", _JOB)
JOBS_FENCED = Counter(
    "duly_jobs_fenced", "Refused endings of attempts whose job another attempt had taken over.", _JOB
)
RECONCILIATIONS = Counter(
    "job_reconciliations", "Reconciled jobs and domain records.", ("kind", "reason_code")
)
CLAIM_BATCH = BatchHistogram(
    "duly_claim_batch_size",
    "Jobs of one claim; 0 if other workers were faster, or a gate was closed.",
    ("queue",),
    buckets=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500),
)
FAIRNESS = Gauge(
    "duly_fairness_index",
    "Jain's index over the orgs whose jobs this process claimed in the last minute: 1 is even.",
    # Not the minimum: every process exports it from its start, also one that claims nothing.
    multiprocess_mode="livemostrecent",
)
# A process without claims treats no org unevenly.
FAIRNESS.set(1)
POOL = Gauge(
    "duly_pool_connections",
    "Connections of the pools (used, idle), and requests that wait for one.",
    ("pool", "state"),
    multiprocess_mode="livesum",
)
LOOP_LAG = Gauge(
    "duly_event_loop_lag_seconds", "Last sampled delay of the event loop.", multiprocess_mode="livemax"
)
HTTP_REQUESTS = BatchHistogram(
    "duly_http_request_seconds",
    "Time until the response started, by method, route template and status class.",
    ("method", "route", "status"),
    buckets=_RESPONSE_SECONDS,
)
WEBHOOKS = Counter("duly_webhook_deliveries", "Delivery attempts of webhooks.", ("result",))
NOTIFICATIONS = Counter("duly_notifications", "Delivery attempts of notifications.", ("channel", "result"))
ALERTS = Counter("duly_alerts", "Fired and resolved alerts.", ("kind", "change"))

DeliveryResult = Literal["delivered", "retried", "failed"]
NotificationResult = Literal["sent", "retried", "failed", "suppressed"]
_WEBHOOK_RESULTS = {result: WEBHOOKS.labels(result) for result in get_args(DeliveryResult)}


class JobMetrics(NamedTuple):
    """The hot metrics of one job type in one queue, resolved once."""

    enqueued: Counter
    started: Counter
    waited: BatchHistogram
    succeeded: Counter
    ran: BatchHistogram
    attempts: BatchHistogram


@lru_cache(1000)
def job_metrics(job_type: str, queue: str) -> JobMetrics:
    """Return the metrics of a job type in a queue."""
    labels = job_types(job_type), queues(queue)
    # They begin at 0: `increase` does not see the first value of a series.
    DEADLETTER.labels(*labels)
    LEASE_LOSSES.labels(*labels)
    return JobMetrics(
        JOBS_ENQUEUED.labels(*labels),
        JOBS_STARTED.labels(*labels),
        JOBS_WAIT.labels(*labels),
        JOBS_SUCCEEDED.labels(*labels),
        JOBS_DURATION.labels(*labels),
        JOBS_ATTEMPTS.labels(labels[0]),
    )


def count_webhook_deliveries(result: DeliveryResult, n: int = 1) -> None:
    """Count delivery attempts of webhooks; `failed` means finally."""
    _WEBHOOK_RESULTS[result].inc(n)


def count_notifications(channel: str, result: NotificationResult, n: int = 1) -> None:
    """Count delivery attempts of notifications on a channel."""
    _channel_results(channels(channel))[result].inc(n)


@lru_cache(50)
def _channel_results(channel: str) -> dict[str, Counter]:
    return {result: NOTIFICATIONS.labels(channel, result) for result in get_args(NotificationResult)}


def count_alerts(kind: str, change: Literal["fired", "resolved"], n: int = 1) -> None:
    """Count alerts that fired or were resolved."""
    ALERTS.labels(alert_kinds(kind), change).inc(n)


def count_reconciled(kind: str, reason_code: str) -> None:
    """Count a reconciled job or record."""
    RECONCILIATIONS.labels(kind, reason_code).inc()


def observe_claim(queue: str, n: int) -> None:
    """Observe the size of one claim."""
    CLAIM_BATCH.labels(queues(queue)).observe(n)


def observe_request(method: str, route: str, status: int, seconds: float) -> None:
    """Observe the time to the response of an HTTP request. `route` is the template, never the path."""
    HTTP_REQUESTS.labels(methods(method), routes(route), f"{status // 100}xx").observe(seconds)


def set_pool_usage(pool: str, *, used: int, idle: int, waiting: int) -> None:
    """Set the usage of a connection pool."""
    for state, n in (("used", used), ("idle", idle), ("waiting", waiting)):
        POOL.labels(pool, state).set(n)


def set_loop_lag(seconds: float) -> None:
    """Set the lag of the event loop."""
    LOOP_LAG.set(seconds)


async def measure_lag(pause: float) -> float:
    """Sleep and return how much longer than `pause` that took: the lag of the event loop."""
    before = time.monotonic()
    await asyncio.sleep(pause)
    return max(0.0, time.monotonic() - before - pause)


def count_enqueued(job_type: str, queue: str, n: int) -> None:
    """Count newly written jobs."""
    job_metrics(job_type, queue).enqueued.inc(n)


def count_fenced(job_type: str, queue: str) -> None:
    """Count an ending that was refused, because the attempt had lost its lease."""
    JOBS_FENCED.labels(job_types(job_type), queues(queue)).inc()


def count_started(job_type: str, queue: str, waits: Collection[float]) -> None:
    """Count claimed jobs, and how long each waited."""
    these = job_metrics(job_type, queue)
    these.started.inc(len(waits))
    these.waited.observe_all(waits)


class SettledAttempt(NamedTuple):
    """An ending that is written."""

    job_type: str
    queue: str
    to: Transition
    attempts: int
    """Spent attempts including this one; 0 if the job never started."""
    seconds: float | None = None
    """How long the handler ran, if that is known."""


def count_completed(job_type: str, queue: str, seconds: Collection[float], attempts: Collection[int]) -> None:
    """Count completed jobs of one kind: the one ending that comes by the thousand."""
    these = job_metrics(job_type, queue)
    these.succeeded.inc(len(attempts))
    these.ran.observe_all(seconds)
    these.attempts.observe_all(attempts)


def count_settled(settled: Iterable[SettledAttempt]) -> None:
    """Count endings of any kind; those of one statement together."""
    increments: collections.Counter[_Increment] = collections.Counter()
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    attempts: defaultdict[str, list[int]] = defaultdict(list)
    for one in settled:
        labels = job_types(one.job_type), queues(one.queue)
        increments.update((counter, (*labels, *more)) for counter, more in _counters(one.to))
        if one.seconds is not None:
            seconds[labels].append(one.seconds)
        if one.to.status.terminal and one.attempts:
            attempts[labels[0]].append(one.attempts)
    for (counter, values), n in increments.items():
        counter.labels(*values).inc(n)
    for labels, durations in seconds.items():
        JOBS_DURATION.labels(*labels).observe_all(durations)
    for job_type, spent in attempts.items():
        JOBS_ATTEMPTS.labels(job_type).observe_all(spent)


_Increment = tuple[Counter, tuple[str, ...]]


def _counters(to: Transition) -> Iterator[_Increment]:
    """Yield the counters of a transition with their additional labels."""
    lost = EventType.LEASE_LOST in to.events
    if lost:
        yield LEASE_LOSSES, ()
    error_class = (error_classes(to.error.error_class),) if to.error is not None else ()
    if to.status is Status.COMPLETED:
        yield JOBS_SUCCEEDED, ()
    elif to.status is Status.CANCELED:
        yield JOBS_CANCELED, ()
    elif to.status is Status.FAILED:
        yield JOBS_FAILED, error_class
        if to.outcome is Outcome.DEAD:
            yield DEADLETTER, ()
    elif to.gives_back:
        yield JOBS_RETURNED, ()
    elif not lost:
        yield JOBS_RETRIED, error_class
