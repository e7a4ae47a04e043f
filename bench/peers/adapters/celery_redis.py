"""Celery on Redis: late acknowledgement, a large prefetch, no results, no gossip."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from bench.peers.adapters._common import BlockingAdapter, Gate, board, redis, run
from celery import Celery  # type: ignore[import-not-found]
from redis import Redis  # type: ignore[import-not-found]

VISIBILITY = 30
PREFETCH = 4
MAX_THREADS = 100

app = Celery("bench", broker=os.environ.get("BENCH_REDIS", "memory://"))
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    broker_transport_options={"visibility_timeout": VISIBILITY},
    broker_pool_limit=20,
    worker_prefetch_multiplier=PREFETCH,
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
)


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


TASKS = {handler.__name__: app.task(name=handler.__name__)(handler) for handler in (noop, stamp, slow)}


class CeleryOnRedis(BlockingAdapter):
    """Celery with its Redis broker."""

    name = "Celery"
    package = "celery"
    store = "Redis"
    settings = (
        f"threads pool, slots up to {MAX_THREADS}, acks_late, prefetch multiplier {PREFETCH}, "
        f"ignore_result, no gossip, mingle, heartbeat or remote control; visibility timeout {VISIBILITY} s"
    )
    persists = "nothing: results are ignored, an acknowledged message is gone"

    def open(self) -> None:
        """Connect."""
        self.redis = Redis.from_url(redis())
        self.producer = app.amqp.Producer(app.connection_for_write())

    def close(self) -> None:
        """Disconnect."""
        self.producer.close()
        self.redis.close()

    def prepare(self) -> None:
        """Empty the store."""
        with Redis.from_url(redis()) as client:
            client.flushdb()

    def send(self, kind: str, value: int) -> None:
        """One call, with a producer of the pool."""
        TASKS[kind].apply_async((value,))

    def send_many(self, kind: str, values: Sequence[int]) -> None:
        """One call a job with one producer: there is no bulk call."""
        task = TASKS[kind]
        for value in values:
            task.apply_async((value,), producer=self.producer)

    def left(self) -> int:
        """What waits in the queue, and what was delivered and is not acknowledged."""
        return int(self.redis.llen("celery")) + int(self.redis.hlen("unacked"))

    def work(self, slots: int, gate: Gate) -> None:
        """Run the worker in this process."""
        with app.connection_for_read() as connection:
            connection.ensure_connection()
        gate.wait()
        app.Worker(
            pool="threads",
            concurrency=min(slots, MAX_THREADS),
            loglevel="WARNING",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        ).start()


if __name__ == "__main__":
    run(CeleryOnRedis())
