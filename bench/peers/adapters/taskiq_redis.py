"""Taskiq on Redis: the broker with streams, which acknowledges a message when its job is done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import uvloop  # type: ignore[import-not-found]
from bench.peers.adapters._common import Adapter, Gate, board, redis, run
from redis.asyncio import Redis  # type: ignore[import-not-found]
from taskiq.receiver import Receiver  # type: ignore[import-not-found]
from taskiq_redis import RedisStreamBroker  # type: ignore[import-not-found]

IDLE = 10
AT_ONCE = 50
MAX_TASKS = 100

broker = RedisStreamBroker(
    os.environ.get("BENCH_REDIS", "redis://127.0.0.1/0"),
    # From the start of the stream, so that jobs sent before the first worker are not skipped.
    consumer_id="0",
    idle_timeout=IDLE * 1000,
    unacknowledged_lock_timeout=IDLE,
)


async def noop(_number: int) -> None:
    """Do nothing."""
    board.noop()


async def stamp(sent_ns: int) -> None:
    """Record the latency."""
    board.stamp(sent_ns)


async def slow(number: int) -> None:
    """Take one second."""
    board.slow(number)
    await asyncio.sleep(1)


TASKS = {
    handler.__name__: broker.task(task_name=handler.__name__)(handler) for handler in (noop, stamp, slow)
}


class Taskiq(Adapter):
    """Taskiq."""

    name = "Taskiq"
    package = "taskiq"
    store = "Redis"
    settings = (
        f"RedisStreamBroker, acknowledged when done, max_async_tasks = slots up to {MAX_TASKS}, uvloop, "
        f"idle_timeout {IDLE} s"
    )
    persists = "the message stays in the stream until it is trimmed; no result backend"

    async def open(self) -> None:
        """Connect."""
        await broker.startup()
        self.redis = Redis.from_url(redis())

    async def close(self) -> None:
        """Disconnect."""
        await self.redis.aclose()
        await broker.shutdown()

    async def prepare(self) -> None:
        """Empty the store, and make the stream anew."""
        async with Redis.from_url(redis()) as client:
            await client.flushdb()
        await broker.startup()

    async def send(self, kind: str, value: int) -> None:
        """Make one call."""
        await TASKS[kind].kiq(value)

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Make many calls at once: there is no bulk call."""
        await self.at_once(AT_ONCE, lambda index: self.send(kind, values[index]), len(values))

    async def left(self) -> int:
        """What was not yet delivered (which Redis 7 tells), and what is not acknowledged."""
        (group,) = await self.redis.xinfo_groups(broker.queue_name)
        return int(group["lag"]) + int(group["pending"])

    async def work(self, slots: int, gate: Gate) -> None:
        """The receiver in this process, as the command `taskiq worker` runs it."""
        broker.is_worker_process = True
        await broker.startup()
        with ThreadPoolExecutor(1) as threads:
            receiver = Receiver(
                broker, executor=threads, max_async_tasks=min(slots, MAX_TASKS), run_startup=False
            )
            stop = await gate.ready()
            await receiver.listen(stop)
        await broker.shutdown()


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    run(Taskiq())
