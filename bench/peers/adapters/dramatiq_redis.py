"""Dramatiq on Redis: its worker in this process, with a larger prefetch and short heartbeats."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence

PREFETCH = 500
os.environ.setdefault("dramatiq_queue_prefetch", str(PREFETCH))

import dramatiq  # type: ignore[import-not-found]  # noqa: E402
from bench.peers.adapters._common import BlockingAdapter, Gate, board, run  # noqa: E402
from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]  # noqa: E402
from redis import ConnectionPool, Redis  # type: ignore[import-not-found]  # noqa: E402

HEARTBEAT = 10
MAINTENANCE = 100_000
MAX_THREADS = 100

# A connection for each thread and some for the consumers: the default limit of the pool is too low.
connections = ConnectionPool.from_url(
    os.environ.get("BENCH_REDIS", "redis://127.0.0.1/0"), max_connections=MAX_THREADS + 20
)
broker = RedisBroker(
    client=Redis(connection_pool=connections),
    heartbeat_timeout=HEARTBEAT * 1000,
    maintenance_chance=MAINTENANCE,
)
dramatiq.set_broker(broker)


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


ACTORS = {handler.__name__: dramatiq.actor(handler) for handler in (noop, stamp, slow)}


class Dramatiq(BlockingAdapter):
    """Dramatiq."""

    name = "Dramatiq"
    package = "dramatiq"
    store = "Redis"
    settings = (
        f"threads = slots up to {MAX_THREADS}, prefetch {PREFETCH}, heartbeat timeout {HEARTBEAT} s, "
        f"maintenance in {MAINTENANCE / 10_000:.0f} % of the commands"
    )
    persists = "nothing: an acknowledged message is deleted"

    def prepare(self) -> None:
        """Empty the store."""
        broker.client.flushdb()

    def close(self) -> None:
        """Disconnect."""
        broker.close()

    def send(self, kind: str, value: int) -> None:
        """Make one call."""
        ACTORS[kind].send(value)

    def send_many(self, kind: str, values: Sequence[int]) -> None:
        """One call a job: there is no bulk call."""
        send = ACTORS[kind].send
        for value in values:
            send(value)

    def left(self) -> int:
        """A message is kept until it is acknowledged."""
        return int(broker.client.hlen(f"{broker.namespace}:default.msgs"))

    def work(self, slots: int, gate: Gate) -> None:
        """Run the worker in this process."""
        broker.client.ping()
        worker = dramatiq.Worker(broker, worker_threads=min(slots, MAX_THREADS))
        gate.wait()
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        worker.start()
        stopped.wait()
        worker.stop()


if __name__ == "__main__":
    run(Dramatiq())
