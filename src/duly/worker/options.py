"""Options of a worker, and its ways to the database."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from duly.core.errors import ConfigurationError
from duly.core.invariants import lease_violations, raise_violations
from duly.core.policy import DEAD_LETTER_QUEUE, QUEUES
from duly.jobs.resources import Resources

OpenResources = Callable[[], Awaitable[Resources]]
"""Opens the database and the blob store; must be picklable, because isolated processes call it, too."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Capacity and time limits of a worker."""

    name: str = ""
    queues: tuple[str, ...] = tuple(queue for queue in QUEUES if queue != DEAD_LETTER_QUEUE)
    slots: int = 100
    """Maximum number of concurrent jobs."""
    threads: int = 32
    """Maximum number of concurrent sync handlers, each on a thread."""
    isolated: int = 2
    """Maximum number of concurrent handlers in a process of their own."""
    lease: timedelta = timedelta(seconds=30)
    heartbeat: timedelta = timedelta(seconds=2)
    poll: timedelta = timedelta(seconds=1)
    drain: timedelta = timedelta(seconds=30)
    cancel_grace: timedelta = timedelta(seconds=10)
    stop_grace: timedelta = timedelta(seconds=5)
    """Time that a cancelled handler has to stop before the worker abandons it."""
    retries_per_second: float = 10.0
    retry_burst: int = 100
    result_max: int = 64 * 2**20
    metrics: bool = True
    """Whether to count metrics; switch off to measure what counting costs."""
    job_log_level: int = logging.INFO
    """Minimum level of the `ctx.log` lines that are stored with the job."""

    def check(self) -> None:
        """Raise ConfigurationError for options that cannot work."""
        if not self.queues or DEAD_LETTER_QUEUE in self.queues:
            raise ConfigurationError(
                f"a worker cannot serve the queues {list(self.queues)}",
                field="queues",
                fix=f"name at least one queue, and not {DEAD_LETTER_QUEUE}",
            )
        for name in ("slots", "threads", "isolated", "retry_burst"):
            if (number := getattr(self, name)) < 1:
                raise ConfigurationError(
                    f"{name} must be at least 1, got {number}", field=name, fix="use 1 or more"
                )
        for name in ("lease", "heartbeat", "poll"):
            if (duration := getattr(self, name)) <= timedelta(0):
                raise ConfigurationError(
                    f"{name} must be positive, got {duration.total_seconds():g} s",
                    field=name,
                    fix="use more than zero",
                )
        if not self.retries_per_second > 0:
            raise ConfigurationError(
                f"retries_per_second must be positive, got {self.retries_per_second}",
                field="retries_per_second",
                fix="use more than zero",
            )
        raise_violations(list(lease_violations(self.lease, self.heartbeat)))


class WorkerConnections:
    """How a worker and its isolated processes connect to the database."""

    def __init__(
        self,
        url: str,
        listen_url: str,
        open_resources: OpenResources,
        *,
        open_engine: OpenResources | None = None,
        direct: bool = False,
    ) -> None:
        self.url = url
        self.listen_url = listen_url
        self.open_resources = open_resources
        self.open_engine = open_engine or open_resources
        """Opens the worker's own resources, which no handler shares."""
        self.direct = direct
        """Whether `url` leads to the database itself and not to a pooler."""
