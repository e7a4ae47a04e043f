"""arq on Redis: many jobs at once, no results kept, a short time limit so that lost jobs come again soon."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from arq import create_pool, func  # type: ignore[import-not-found]
from arq.connections import ArqRedis, RedisSettings  # type: ignore[import-not-found]
from arq.constants import default_queue_name  # type: ignore[import-not-found]
from arq.worker import Worker  # type: ignore[import-not-found]
from bench.peers.adapters._common import Adapter, Gate, board, redis, run

TIMEOUT = 10
POLL = 0.02
AT_ONCE = 50


async def noop(_context: dict[str, Any], _number: int) -> None:
    """Do nothing."""
    board.noop()


async def stamp(_context: dict[str, Any], sent_ns: int) -> None:
    """Record the latency."""
    board.stamp(sent_ns)


async def slow(_context: dict[str, Any], number: int) -> None:
    """Take one second."""
    board.slow(number)
    await asyncio.sleep(1)


async def connect() -> ArqRedis:
    """A pool of connections."""
    return await create_pool(RedisSettings.from_dsn(redis()))


class Arq(Adapter):
    """arq."""

    name = "arq"
    package = "arq"
    store = "Redis"
    settings = f"max_jobs = slots, keep_result 0, poll_delay {POLL} s, job_timeout {TIMEOUT} s"
    persists = "nothing: a job that is done is deleted with its result"

    async def open(self) -> None:
        """Connect."""
        self.redis = await connect()

    async def close(self) -> None:
        """Disconnect."""
        await self.redis.aclose(close_connection_pool=True)

    async def prepare(self) -> None:
        """Empty the store."""
        client = await connect()
        await client.flushdb()
        await client.aclose(close_connection_pool=True)

    async def send(self, kind: str, value: int) -> None:
        """Make one call."""
        await self.redis.enqueue_job(kind, value)

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Make many calls at once: there is no bulk call."""
        await self.at_once(AT_ONCE, lambda index: self.send(kind, values[index]), len(values))

    async def left(self) -> int:
        """A job leaves the queue when it is finished."""
        return int(await self.redis.zcard(default_queue_name))

    async def work(self, slots: int, gate: Gate) -> None:
        """Run the worker in this process."""
        worker = Worker(
            [func(handler, name=handler.__name__) for handler in (noop, stamp, slow)],
            redis_pool=await connect(),
            max_jobs=slots,
            keep_result=0,
            poll_delay=POLL,
            job_timeout=TIMEOUT,
            log_results=False,
            handle_signals=False,
        )
        stop = await gate.ready()
        running = asyncio.create_task(worker.async_run())
        await stop.wait()
        await worker.close()
        await asyncio.gather(running, return_exceptions=True)


if __name__ == "__main__":
    run(Arq())
