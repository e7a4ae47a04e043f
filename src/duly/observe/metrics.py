"""What is counted for Prometheus: every name with its labels, and a function for each thing counted.

A number is a fact: it is counted after the commit that made it one. What only the database knows, as how much
waits, is not counted but asked for, by `duly.control.figures`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from prometheus_client import Counter, Gauge

from duly.observe.histogram import Histogram
from duly.observe.labels import Fixed, Names

job_types, queues, error_classes, channels, alert_kinds = (
    Names(500),
    Names(100),
    Names(200),
    Names(20),
    Names(50),
)
routes = Names(500)
methods = Fixed(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))

_JOB = ("job_type", "queue")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_ANSWERS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

JOBS_ENQUEUED = Counter("jobs_enqueued", "Jobs that were enqueued; not those that were there already.", _JOB)
JOBS_STARTED = Counter("jobs_started", "Attempts that a worker has claimed.", _JOB)
JOBS_SUCCEEDED = Counter("jobs_succeeded", "Jobs that were completed, in part or as a whole.", _JOB)
JOBS_FAILED = Counter("jobs_failed", "Jobs that failed for good, dead ones included.", (*_JOB, "error_class"))
JOBS_DURATION = Histogram(
    "jobs_duration_seconds", "Run time: how long the handler of an attempt took.", _JOB, buckets=_SECONDS
)
JOBS_ATTEMPTS = Histogram(
    "jobs_attempts_histogram",
    "Attempts that a job took until it was over.",
    ("job_type",),
    buckets=(1, 2, 3, 4, 5, 8, 12, 20),
)
DEADLETTER = Counter("deadletter", "Jobs that became dead letters: no attempt was left.", _JOB)

JOBS_RETRIED = Counter(
    "duly_jobs_retried", "Attempts that failed and will be repeated.", (*_JOB, "error_class")
)
JOBS_RETURNED = Counter("duly_jobs_returned", "Attempts that were given back and do not count.", _JOB)
JOBS_CANCELED = Counter("duly_jobs_canceled", "Jobs that were canceled after they had started.", _JOB)
JOBS_WAIT = Histogram(
    "duly_jobs_wait_seconds",
    "From when an attempt could have started, for a new job its enqueue, until it was claimed.",
    _JOB,
    buckets=_SECONDS,
)
LEASE_LOSSES = Counter("duly_lease_losses", "Attempts that were taken from workers that went silent.", _JOB)
JOBS_FENCED = Counter(
    "duly_jobs_fenced", "Endings that were refused, because another attempt had taken over.", _JOB
)
RECONCILIATIONS = Counter(
    "job_reconciliations",
    "Jobs and records that were put right by others than their workers.",
    ("kind", "reason_code"),
)
CLAIM_BATCH = Histogram(
    "duly_claim_batch_size",
    "Jobs that one claim took; 0 if others were faster, or a gate was shut.",
    ("queue",),
    buckets=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500),
)
FAIRNESS = Gauge(
    "duly_fairness_index",
    "Jain's index over the orgs whose jobs this process claimed in the last minute: 1 is even.",
    # Not the least: every process has it from its start, also one that claims nothing.
    multiprocess_mode="livemostrecent",
)
# Who claims nothing treats nobody unevenly.
FAIRNESS.set(1)
POOL = Gauge(
    "duly_pool_connections",
    "Connections of the pools: used, idle; and those who wait for one.",
    ("pool", "state"),
    multiprocess_mode="livesum",
)
LOOP_LAG = Gauge(
    "duly_event_loop_lag_seconds",
    "How much later than asked the event loop came back, the last time one looked.",
    multiprocess_mode="livemax",
)
HTTP_REQUESTS = Histogram(
    "duly_http_request_seconds",
    "HTTP requests until the answer began, by method, template of the route and class of the status.",
    ("method", "route", "status"),
    buckets=_ANSWERS,
)
WEBHOOKS = Counter("duly_webhook_deliveries", "Tries to deliver a message to an endpoint.", ("result",))
NOTIFICATIONS = Counter(
    "duly_notifications", "Notifications by what became of a try to tell them.", ("channel", "result")
)
ALERTS = Counter("duly_alerts", "Alerts that began, and that were over.", ("kind", "change"))

Delivered = Literal["delivered", "retried", "failed"]
Told = Literal["sent", "retried", "failed", "suppressed"]
_DELIVERED = {known: WEBHOOKS.labels(known) for known in get_args(Delivered)}


class OfJobs(NamedTuple):
    """What is counted again and again of one job type in one queue, found once."""

    enqueued: Counter
    started: Counter
    waited: Histogram
    succeeded: Counter
    ran: Histogram
    attempts: Histogram


@lru_cache(1000)
def of_jobs(job_type: str, queue: str) -> OfJobs:
    """Where to count them."""
    labels = job_types(job_type), queues(queue)
    # They begin at 0: `increase` does not see the first of a series that begins with it.
    DEADLETTER.labels(*labels)
    LEASE_LOSSES.labels(*labels)
    return OfJobs(
        JOBS_ENQUEUED.labels(*labels),
        JOBS_STARTED.labels(*labels),
        JOBS_WAIT.labels(*labels),
        JOBS_SUCCEEDED.labels(*labels),
        JOBS_DURATION.labels(*labels),
        JOBS_ATTEMPTS.labels(labels[0]),
    )


def delivered(result: Delivered, n: int = 1) -> None:
    """So many tries to deliver a webhook ended so; `failed` means for good."""
    _DELIVERED[result].inc(n)


def notified(channel: str, result: Told, n: int = 1) -> None:
    """So many notifications were told, or not, on this channel."""
    _results_on(channels(channel))[result].inc(n)


@lru_cache(50)
def _results_on(channel: str) -> dict[str, Counter]:
    return {known: NOTIFICATIONS.labels(channel, known) for known in get_args(Told)}


def alerted(kind: str, change: Literal["fired", "resolved"], n: int = 1) -> None:
    """So many alerts began, or were over."""
    ALERTS.labels(alert_kinds(kind), change).inc(n)


def reconciled(kind: str, reason_code: str) -> None:
    """Something was put right by another than its worker."""
    RECONCILIATIONS.labels(kind, reason_code).inc()


def claimed(queue: str, n: int) -> None:
    """One claim took so many."""
    CLAIM_BATCH.labels(queues(queue)).observe(n)


def answered(method: str, route: str, status: int, seconds: float) -> None:
    """One HTTP request was answered. `route` is the template, never the path."""
    HTTP_REQUESTS.labels(methods(method), routes(route), f"{status // 100}xx").observe(seconds)


def pooled(pool: str, *, used: int, idle: int, waiting: int) -> None:
    """How busy a pool of connections is now."""
    for state, n in (("used", used), ("idle", idle), ("waiting", waiting)):
        POOL.labels(pool, state).set(n)


def lagged(seconds: float) -> None:
    """How late the event loop was."""
    LOOP_LAG.set(seconds)


async def late_by(pause: float) -> float:
    """How much longer than asked a pause took: as long as something else kept the event loop busy."""
    before = time.monotonic()
    await asyncio.sleep(pause)
    return max(0.0, time.monotonic() - before - pause)


def enqueued(job_type: str, queue: str, n: int) -> None:
    """So many jobs were written, and were new."""
    of_jobs(job_type, queue).enqueued.inc(n)


def fenced(job_type: str, queue: str) -> None:
    """An attempt had lost its job, and what it left was not written."""
    JOBS_FENCED.labels(job_types(job_type), queues(queue)).inc()


def started(job_type: str, queue: str, waits: Collection[float]) -> None:
    """These were claimed, after having waited so long each."""
    these = of_jobs(job_type, queue)
    these.started.inc(len(waits))
    these.waited.observe_all(waits)
