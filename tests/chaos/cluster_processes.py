"""The processes that use the database: workers, clients, an observer; restarted when they exit."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.chaos.clock import SHIFT
from tests.chaos.pace import pause, tries
from tests.chaos.plan import CLIENTS, WORKERS
from tests.chaos.processes import end, python, start

STUCK = 70
"""The exit code of a worker that gives up its blocked loop; a supervisor restarts it."""


class Member:
    """A role in the cluster and its current process."""

    def __init__(self, log: Path, begin: Callable[[int, float], subprocess.Popen[bytes]]) -> None:
        self.name = log.stem
        self._log = log
        self._log_start = 0
        self._begin = begin
        self._lives = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.expected = False
        """Whether its end would be our doing."""

    def begin(self, clock: float = 0.0) -> None:
        self._lives += 1
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        self.process = self._begin(self._lives, clock)
        self.expected = False

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    async def until_ready(self, timeout: float = 60.0) -> None:
        """Wait until it works: faults are injected only into running processes."""
        async for _ in tries(timeout):
            with self._log.open("rb") as file:
                file.seek(self._log_start)
                if b"ready\n" in file.read():
                    return

    def kill(self) -> None:
        self.expected = True
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def left(self) -> int | None:
        """Return the exit code of a process that exited by itself."""
        return None if self.process is None or self.expected else self.process.poll()


class Crew:
    """All processes of a run."""

    def __init__(self, home: Path, env: dict[str, str], seed: int, rate: float) -> None:
        self._home = home
        self._env = env
        self._seed = seed
        self._rate = rate
        self.workers = [self._member(f"w{n}", self._worker) for n in range(WORKERS)]
        self.clients = [self._member(f"c{n}", self._client) for n in range(CLIENTS)]
        self.observer = self._member("observer", self._observer)
        self.departures: list[str] = []
        """Workers that went by themselves."""

    def _member(self, name: str, command: Callable[[str, int], list[str]]) -> Member:
        def begin(life: int, clock: float) -> subprocess.Popen[bytes]:
            env = {**self._env, SHIFT: str(clock)} if clock else self._env
            return start(command(name, life), log, env=env)

        log = self._home / f"{name}.log"
        return Member(log, begin)

    def _worker(self, name: str, life: int) -> list[str]:
        return python("tests.chaos.worker", f"{name}.{life}")

    def _client(self, name: str, life: int) -> list[str]:
        return python("tests.chaos.client", name, str(life), str(self._seed), str(self._rate / CLIENTS))

    def _observer(self, name: str, life: int) -> list[str]:
        return python("tests.chaos.observer", f"{name}.{life}")

    async def look_after(self) -> None:
        """Replace workers that exited by themselves. A client must not: that would be a bug of the test."""
        while True:
            await pause(0.3)
            for worker in self.workers:
                code = worker.left()
                if code is not None:
                    self._check(worker.name, code, allowed=(0, STUCK))
                    self.departures.append(f"{worker.name} left with code {code}")
                    worker.begin()
            for member in (*self.clients, self.observer):
                code = member.left()
                if code is not None:
                    self._check(member.name, code, allowed=(0,))

    def _check(self, name: str, code: int, allowed: tuple[int, ...]) -> None:
        if code not in allowed:
            raise RuntimeError(f"{name} left with code {code}; see {self._home / name}.log")

    def stop(self) -> None:
        """Stop all processes."""
        for member in (*self.clients, self.observer, *self.workers):
            member.expected = True
            if member.process is not None and member.process.poll() is None:
                member.send(signal.SIGCONT)
                member.process.kill()
                member.process.wait()

    def drain(self) -> dict[str, int]:
        """Drain the workers; return their exit codes."""
        codes = {}
        for worker in self.workers:
            worker.expected = True
            if worker.process is not None:
                codes[worker.name] = end(worker.process, 20)
        return codes


def environment(home: Path, run: str, url: str, password: str) -> dict[str, str]:
    """Return the environment variables of all processes."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DULY_", "PG"))}
    return {
        **inherited,
        "DULY_CHAOS_RUN": run,
        "DULY_CHAOS_HOME": str(home),
        "DULY_CHAOS_PASSWORD": password,
        "DULY_DATABASE_URL": url,
        "DULY_BLOBS_URL": str(home / "blobs"),
        "DULY_HOME": str(home / "duly"),
        "DULY_WORKER_LEASE": "3",
        "DULY_WORKER_HEARTBEAT": "0.5",
        "DULY_POOL_MAX": "6",
        "DULY_POOL_PATIENCE": "5",
        "PYTHONUNBUFFERED": "1",
    }
