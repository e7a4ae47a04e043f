"""Adapters of systems with asynchronous calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.peers.adapters._base import PACED_AT_ONCE, PAUSE, WARM_UPS, Base, noted, parts
from bench.peers.adapters._gate import Gate


class Adapter(Base):
    """A system with asynchronous calls."""

    async def open(self) -> None:
        """Connect the sender and `left`; called once before any of the calls below."""

    async def close(self) -> None:
        """Disconnect."""

    async def prepare(self) -> None:
        """Create the schema if there is none, and empty it. Called without `open`."""
        raise NotImplementedError

    async def empty(self) -> None:
        """Remove all jobs; called between `open` and `close`, while no worker runs."""
        await self.prepare()

    async def send(self, kind: str, value: int) -> None:
        """Enqueue one job: kind is noop, slow or stamp."""
        raise NotImplementedError

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Enqueue all of them by the system's bulk call."""
        raise NotImplementedError

    async def left(self) -> int:
        """Return the number of jobs that are not stored as finished."""
        raise NotImplementedError

    async def work(self, slots: int, gate: Gate) -> None:
        """Connect, `stop = await gate.ready()`, consume until that event is set, and return."""
        raise NotImplementedError

    async def at_once(self, count: int, each: Callable[[int], Any], jobs: int) -> None:
        """Call for every number below `jobs`, this many at once."""
        numbers = iter(range(jobs))

        async def lane() -> None:
            for number in numbers:
                await each(number)

        await asyncio.gather(*(lane() for _ in range(count)))

    async def bulk(self, jobs: int) -> float:
        """Return the seconds for this many no-op jobs by bulk calls."""
        await self.send_many("noop", [0])
        await self.empty()
        self.clock()
        start = time.perf_counter()
        await self.send_many("noop", range(jobs))
        return time.perf_counter() - start

    async def single(self, jobs: int, count: int) -> float:
        """Return the seconds for this many calls of one no-op job."""
        await self.send("noop", 0)
        await self.empty()
        self.clock()
        start = time.perf_counter()
        await self.at_once(count, lambda number: self.send("noop", number), jobs)
        return time.perf_counter() - start

    async def paced(self, jobs: int, rate: float) -> float:
        """Return the seconds for this many no-op jobs at a rate, or by bulk calls as fast as possible."""
        self.clock()
        start = time.perf_counter()

        async def in_time(number: int) -> None:
            await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
            await self.send("noop", number)

        if rate:
            await self.at_once(PACED_AT_ONCE, in_time, jobs)
        else:
            for part in parts(jobs):
                await self.send_many("noop", part)
        return time.perf_counter() - start

    async def slow(self, jobs: int) -> float:
        """Return the seconds to enqueue this many jobs of one second."""
        start = time.perf_counter()
        await self.send_many("slow", range(jobs))
        return time.perf_counter() - start

    async def latency(self, jobs: int) -> None:
        """Enqueue one job after the other, each shortly after the last one has started."""
        for number in range(WARM_UPS + jobs):
            if number == WARM_UPS:
                self.clock()
            size = noted()
            await self.send("stamp", time.monotonic_ns() if number >= WARM_UPS else 0)
            while noted() == size:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            await asyncio.sleep(PAUSE)
