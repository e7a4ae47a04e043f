"""One system in one round: its clean store, its programs, and the clock over them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.peers.board import Scores
from bench.peers.catalogue import POSTGRES, System
from bench.peers.environments import ROOT
from bench.peers.processes import Hung, Program
from bench.peers.servers import Postgres, Redis

SLOTS = 500
STEP = 0.002


@dataclass(frozen=True)
class Sizes:
    """Number of jobs and time limits."""

    jobs: int = 10_000
    step_limit: float = 180.0
    recovery_limit: float = 60.0


@dataclass
class Stores:
    """The servers of a run; Redis only if it is installed."""

    postgres: Postgres
    redis: Redis | None


class Bench:
    """One system with its store and programs."""

    def __init__(
        self,
        system: System,
        command: tuple[list[str], dict[str, str]],
        stores: Stores,
        home: Path,
        sizes: Sizes,
    ) -> None:
        self.system = system
        self.stores = stores
        self.sizes = sizes
        self.limit = sizes.step_limit
        self.command, extra = command
        home.mkdir(parents=True, exist_ok=True)
        self.scores = Scores(home / f"{system.key}.board")
        self.log = (home / f"{system.key}.log").open("ab")
        self.env = os.environ | extra | {"BENCH_BOARD": str(self.scores.path)}
        self.running: list[Program] = []
        self.prepared = False

    def fresh(self) -> None:
        """Remove jobs, processes and scores of earlier measurements."""
        self.end()
        self.scores.clear()
        if self.system.store == POSTGRES:
            self.env["BENCH_POSTGRES"] = self.fresh_database()
        elif self.stores.redis is not None:
            self.env["BENCH_REDIS"] = self.stores.redis.fresh()
            self.ask("prepare")
        self.stores.postgres.settle()

    def fresh_database(self) -> str:
        """Copy a prepared, unused database; return its URL."""
        if not self.prepared:
            self.env["BENCH_POSTGRES"] = self.stores.postgres.fresh(self.template)
            self.ask("prepare")
            self.prepared = True
        return self.stores.postgres.fresh(self.database, self.template)

    @property
    def database(self) -> str:
        """The database of this system."""
        return f"bench_{self.system.key}"

    @property
    def template(self) -> str:
        """The database to copy."""
        return f"{self.database}_clean"

    def start(self, *words: str, slot: int = 0) -> Program:
        """Start the adapter; it stops with the measurement at the latest."""
        env = self.env | {"BENCH_SLOT": str(slot)}
        program = Program([*self.command, *words], ROOT, env, self.log)
        self.running.append(program)
        return program

    def ask(self, *words: str) -> dict[str, Any]:
        """Start the adapter for one answer."""
        with self.started(*words) as program:
            return self.answer(program)

    @contextmanager
    def started(self, *words: str) -> Iterator[Program]:
        """Start the adapter, and stop it at the end."""
        program = self.start(*words)
        try:
            yield program
        finally:
            program.kill()
            self.running.remove(program)

    def answer(self, program: Program) -> dict[str, Any]:
        """Wait for its next answer, while all the others run."""
        return program.answer(self.limit, partial(self.check_others, program))[1]

    def until_ready(self, program: Program) -> None:
        """Wait until it has connected and warmed up; `tell("go")` starts its measured part."""
        if not (answer := self.answer(program)).get("ready"):
            raise Hung(f"`{program.words}` said {answer} instead of being ready")

    def worker(self, slots: int = SLOTS, slot: int = 0) -> tuple[Program, float]:
        """Return a ready worker, and the seconds it took."""
        program = self.start("work", str(slots), slot=slot)
        ready_ns, answer = program.answer(self.limit)
        if not answer.get("ready"):
            raise Hung(f"the worker said {answer} instead of being ready")
        return program, (ready_ns - program.started_ns) / 1e9

    def until_done(self, jobs: int, watch: Program) -> int:
        """Wait until all handlers have run and all jobs are stored as done; return the nanoseconds."""
        deadline = time.monotonic() + self.limit
        while (done := self.scores.done()) < jobs:
            self.check(deadline, f"{done:,} of {jobs:,} jobs had run")
            time.sleep(STEP)
        while left := self.left(watch):
            self.check(deadline, f"all jobs had run, but {left:,} were not finished in the store")
            time.sleep(STEP)
        return time.monotonic_ns()

    def left(self, watch: Program) -> int:
        """Return the number of jobs that are not stored as finished."""
        watch.tell("left")
        return int(watch.answer(self.limit)[1]["left"])

    def check(self, deadline: float, state: str) -> None:
        """Raise after the time limit, or if a program has exited."""
        if time.monotonic() > deadline:
            raise Hung(f"{state} after {self.limit:.0f} s")
        self.check_others(None, state)

    def check_others(self, current: Program | None, state: str = "it was needed") -> None:
        """Raise if a program other than the asked one has exited."""
        for program in self.running:
            if program is not current and (code := program.process.poll()) is not None:
                raise Hung(f"`{program.words}` ended with code {code} when {state}{program.last_words()}")

    def end(self) -> None:
        """Kill every running program; its shutdown is not measured."""
        while self.running:
            self.running.pop().kill()

    def leave(self) -> None:
        """Kill every program and remove all jobs, so that the server does nothing for this system."""
        self.end()
        if self.system.store == POSTGRES:
            self.stores.postgres.drop(self.database)
        elif self.stores.redis is not None:
            self.stores.redis.fresh()

    def close(self) -> None:
        """Remove everything but the log."""
        self.leave()
        self.log.close()
        if self.system.store == POSTGRES:
            self.stores.postgres.drop(self.template)


@contextmanager
def opened(bench: Bench) -> Iterator[Bench]:
    """Stop all programs in any case."""
    try:
        yield bench
    finally:
        with suppress(OSError):
            bench.close()
