"""RQ on Redis: its worker that runs jobs in its own process, one at a time, and keeps no results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bench.peers.adapters._common import BlockingAdapter, Gate, board, redis, run
from redis import Redis  # type: ignore[import-not-found]
from rq import Queue, Retry, SimpleWorker  # type: ignore[import-not-found]

HANDLERS = "bench.peers.adapters.rq_redis"
TIMEOUT = 10
WORKER_TTL = 30
OPTIONS: dict[str, Any] = {"result_ttl": 0, "description": "bench"}


def noop(_number: int) -> None:
    """Do nothing."""
    board.noop()


def stamp(sent_ns: int) -> None:
    """Record the latency."""
    board.stamp(sent_ns)


def slow(number: int) -> None:
    """Take one second."""
    board.slow(number)
    time.sleep(1)


class Rq(BlockingAdapter):
    """RQ."""

    name = "RQ"
    package = "rq"
    store = "Redis"
    settings = (
        f"SimpleWorker (no fork, one job at a time), result_ttl 0, job_timeout {TIMEOUT} s, 3 retries, "
        f"maintenance every {TIMEOUT} s, worker_ttl {WORKER_TTL} s; all jobs in one bulk call"
    )
    persists = "nothing: a job that is done is deleted with its result"

    def open(self) -> None:
        """Connect."""
        self.redis = Redis.from_url(redis())
        self.queue = Queue("bench", connection=self.redis)

    def close(self) -> None:
        """Disconnect."""
        self.redis.close()

    def prepare(self) -> None:
        """Empty the store."""
        with Redis.from_url(redis()) as client:
            client.flushdb()

    def send(self, kind: str, value: int) -> None:
        """Make one call."""
        self.queue.enqueue_call(
            f"{HANDLERS}.{kind}", (value,), timeout=TIMEOUT, retry=Retry(max=3), **OPTIONS
        )

    def send_many(self, kind: str, values: Sequence[int]) -> None:
        """The bulk call."""
        name, retry = f"{HANDLERS}.{kind}", Retry(max=3)
        self.queue.enqueue_many(
            [Queue.prepare_data(name, (value,), timeout=TIMEOUT, retry=retry, **OPTIONS) for value in values]
        )

    def left(self) -> int:
        """What waits, what a worker has just taken, and what it has started."""
        with self.redis.pipeline() as pipe:
            pipe.llen(self.queue.key)
            pipe.llen(self.queue.intermediate_queue_key)
            pipe.zcard(self.queue.started_job_registry.key)
            return int(sum(pipe.execute()))

    def work(self, slots: int, gate: Gate) -> None:
        """The worker in this process; it has no more than one slot."""
        self.open()
        worker = SimpleWorker(
            [self.queue],
            connection=self.redis,
            maintenance_interval=TIMEOUT,
            # Maintenance waits for the end of a blocking read, which is 15 s shorter than this.
            worker_ttl=WORKER_TTL,
            log_job_description=False,
        )
        gate.wait()
        worker.work(logging_level="WARNING")


if __name__ == "__main__":
    run(Rq())
