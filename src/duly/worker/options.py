"""What a worker can be told."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from duly.model.errors import ConfigurationError
from duly.model.invariants import refuse, silent_leases
from duly.model.policy import DEADLETTER, QUEUES


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How much a worker does at a time, and how patient it is."""

    name: str = ""
    queues: tuple[str, ...] = tuple(queue for queue in QUEUES if queue != DEADLETTER)
    slots: int = 100
    """Jobs at a time."""
    threads: int = 32
    """Of these, handlers that are not async."""
    isolated: int = 2
    """Of these, handlers in a process of their own."""
    lease: timedelta = timedelta(seconds=30)
    heartbeat: timedelta = timedelta(seconds=2)
    poll: timedelta = timedelta(seconds=1)
    drain: timedelta = timedelta(seconds=30)
    cancel_grace: timedelta = timedelta(seconds=10)
    stop_grace: timedelta = timedelta(seconds=5)
    """How long a handler that was stopped may take to obey before it is abandoned."""
    retries_per_second: float = 10.0
    retry_burst: int = 100
    result_max: int = 64 * 2**20
    metrics: bool = True
    """Whether it counts what it does; without, one can measure what counting costs."""
    job_log_level: int = logging.INFO
    """Lines of `ctx.log` that weigh less are not kept with the job."""

    def check(self) -> None:
        """Refuse what cannot work, by name."""
        if not self.queues or DEADLETTER in self.queues:
            raise ConfigurationError(
                f"{list(self.queues)} are no queues to work on",
                field="queues",
                fix=f"name others than {DEADLETTER}",
            )
        for name in ("slots", "threads", "isolated", "retry_burst"):
            if getattr(self, name) < 1:
                raise ConfigurationError("less than one", field=name, fix="use 1 or more")
        for name in ("lease", "heartbeat", "poll"):
            if getattr(self, name) <= timedelta(0):
                raise ConfigurationError("no time at all", field=name, fix="use more than zero")
        if not self.retries_per_second > 0:
            raise ConfigurationError("nothing could be retried", field="retries_per_second", fix="use more")
        refuse(list(silent_leases(self.lease, self.heartbeat)))
