"""The two processes: one enqueues, one works, both through the public API.

Two calls of the worker are wrapped to count and time them. The processes share counters in a file, so that
the enqueuing one knows the backlog without a query. Each reports on request, as a line, how long its calls
took since the last request.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from duly import Actor, Duly, context
from duly.worker import claim as claims
from duly.worker.claim import Claim
from duly.worker.settle_writer import SettleResult, SettleWriter

SLOTS = 500
BATCH = 500
HIGHEST = 10_000
_PAUSE = 0.01
_NAMES = ("enqueued", "claimed", "finished")


class Tally:
    """Counters shared by processes; each is written by one of them."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(8 * len(_NAMES)))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 0)

    def add(self, name: str, count: int) -> None:
        """Add to a counter."""
        struct.pack_into("q", self._shared, 8 * _NAMES.index(name), self[name] + count)

    def __getitem__(self, name: str) -> int:
        return int(struct.unpack_from("q", self._shared, 8 * _NAMES.index(name))[0])


class Meter:
    """Durations of calls since the last request."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}

    def timed(self, name: str, call: Callable[..., Awaitable[Any]], jobs: Callable[..., int]) -> Any:
        """Wrap a call with a clock; calls without jobs are ignored."""

        async def measured(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            answer = await call(*arguments, **named)
            if jobs(answer, *arguments):
                self._taken.setdefault(name, []).append((time.perf_counter() - start) * 1000)
            return answer

        return measured

    def answer(self) -> None:
        """Answer each line of stdin with one line."""
        for _ in sys.stdin:
            taken, self._taken = self._taken, {}
            print(json.dumps(taken), flush=True)


def make_app(url: str, home: Path) -> Duly:
    """Return the application of both."""
    app = Duly(database_url=url, blobs_url=str(home / "blobs"), pool_min=4)

    @app.job("bench.noop")
    async def noop(number: int) -> None: ...

    return app


async def run_worker(url: str, home: Path) -> None:
    """Work until stdin ends. Claims and completions are timed where the worker calls them."""
    meter, tally = Meter(), Tally(home / "tally")

    def claimed(answer: Claim, *_: Any) -> int:
        tally.add("claimed", len(answer.jobs))
        return len(answer.jobs)

    def finished(answer: SettleResult, _: SettleWriter, batch: Sequence[Any], *__: Any) -> int:
        tally.add("finished", len(batch) - len(answer.lost))
        return len(batch)

    claims.claim_jobs = meter.timed("claim_ms", claims.claim_jobs, claimed)
    SettleWriter.write = meter.timed("finish_ms", SettleWriter.write, finished)  # type: ignore[method-assign]
    async with make_app(url, home) as app, app.worker(slots=SLOTS):
        print("ready", flush=True)
        await asyncio.to_thread(meter.answer)


async def run_enqueuer(url: str, home: Path, orgs: list[UUID], rate: float) -> None:
    """Enqueue as fast as allowed until stdin ends, while the backlog is below its limit."""
    meter, tally = Meter(), Tally(home / "tally")
    async with make_app(url, home) as app:
        noop = app.registry.get("bench.noop")
        enqueue = meter.timed("enqueue_ms", app.enqueue_many, lambda handles, *_: len(handles))

        async def go_on() -> None:
            number, begun = 0, time.monotonic()
            while True:
                late = not rate or (time.monotonic() - begun) * rate > number
                if not late or tally["enqueued"] - tally["claimed"] > HIGHEST - BATCH:
                    await asyncio.sleep(_PAUSE)
                    continue
                with context(org_id=orgs[number // BATCH % len(orgs)], actor=Actor.system("bench")):
                    await enqueue([noop.call(n) for n in range(number, number + BATCH)])
                number += BATCH
                tally.add("enqueued", BATCH)

        going = asyncio.create_task(go_on())
        print("ready", flush=True)
        answering = asyncio.create_task(asyncio.to_thread(meter.answer))
        await asyncio.wait([going, answering], return_when=asyncio.FIRST_COMPLETED)
        if not going.cancel():
            going.result()


class Side:
    """One of the processes, seen from the parent."""

    def __init__(self, *arguments: str) -> None:
        main = Path(__file__).with_name("__main__.py")
        self._process = subprocess.Popen(
            [sys.executable, str(main), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def wait_until_ready(self) -> None:
        """Wait until it reports ready."""
        assert self._line() == "ready", "a process did not start"

    def ask(self) -> dict[str, list[float]]:
        """Return how long its calls took since the last request."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        durations: dict[str, list[float]] = json.loads(self._line())
        return durations

    def stop(self) -> None:
        """Let it end by itself; kill it after a time limit."""
        try:
            self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


@contextmanager
def both_sides(url: str, home: Path, orgs: list[UUID], rate: float) -> Iterator[tuple[Side, Side]]:
    """Start a worker and an enqueuer; the enqueuer stops first."""
    worker = Side("--work", url, str(home))
    enqueuer = None
    try:
        worker.wait_until_ready()
        enqueuer = Side("--enqueue", url, str(home), json.dumps([str(org) for org in orgs]), str(rate))
        enqueuer.wait_until_ready()
        yield worker, enqueuer
    finally:
        if enqueuer is not None:
            enqueuer.stop()
        worker.stop()
