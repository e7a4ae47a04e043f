"""Adapters of systems with blocking calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.peers.adapters._base import PACED_AT_ONCE, PAUSE, WARM_UPS, Base, noted, parts
from bench.peers.adapters._gate import Gate


class BlockingAdapter(Base):
    """A system with blocking calls; the methods are those of `Adapter`."""

    def open(self) -> None:
        """Connect the sender and `left`."""

    def close(self) -> None:
        """Disconnect."""

    def prepare(self) -> None:
        """Create and empty what the system needs in its store."""
        raise NotImplementedError

    def empty(self) -> None:
        """Remove all jobs."""
        self.prepare()

    def send(self, kind: str, value: int) -> None:
        """Enqueue one job; called from several threads."""
        raise NotImplementedError

    def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Enqueue all of them by the system's bulk call, or the fastest alternative."""
        raise NotImplementedError

    def left(self) -> int:
        """Return the number of jobs that are not stored as finished."""
        raise NotImplementedError

    def work(self, slots: int, gate: Gate) -> None:
        """Connect, `gate.wait()`, consume until SIGTERM (also sent when stdin is closed), and return."""
        raise NotImplementedError

    def bulk(self, jobs: int) -> float:
        """Return the seconds for this many no-op jobs by bulk calls."""
        self.send_many("noop", [0])
        self.empty()
        self.clock()
        start = time.perf_counter()
        self.send_many("noop", range(jobs))
        return time.perf_counter() - start

    def single(self, jobs: int, count: int) -> float:
        """Return the seconds for this many calls of one no-op job, from as many threads."""
        self.send("noop", 0)
        self.empty()
        self.clock()
        return self.by_threads(jobs, count, lambda number: self.send("noop", number))

    def by_threads(self, jobs: int, count: int, each: Callable[[int], Any]) -> float:
        """Return the seconds to call it for every number below `jobs`, this many at once."""
        start = time.perf_counter()
        with ThreadPoolExecutor(count) as threads:
            for _ in threads.map(each, range(jobs)):
                pass
        return time.perf_counter() - start

    def paced(self, jobs: int, rate: float) -> float:
        """Return the seconds for this many no-op jobs at a rate, or by bulk calls as fast as possible."""
        self.clock()
        start = time.perf_counter()

        def in_time(number: int) -> None:
            time.sleep(max(0.0, start + number / rate - time.perf_counter()))
            self.send("noop", number)

        if rate:
            return self.by_threads(jobs, PACED_AT_ONCE, in_time)
        for part in parts(jobs):
            self.send_many("noop", part)
        return time.perf_counter() - start

    def slow(self, jobs: int) -> float:
        """Return the seconds to enqueue this many jobs of one second."""
        start = time.perf_counter()
        self.send_many("slow", range(jobs))
        return time.perf_counter() - start

    def latency(self, jobs: int) -> None:
        """Enqueue one job after the other, each shortly after the last one has started."""
        for number in range(WARM_UPS + jobs):
            if number == WARM_UPS:
                self.clock()
            size = noted()
            self.send("stamp", time.monotonic_ns() if number >= WARM_UPS else 0)
            while noted() == size:
                time.sleep(0.001)
            time.sleep(PAUSE)
