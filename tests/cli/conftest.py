"""Fixtures: the program in this process, and services as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duly.cli.program import run as run_program
from duly.testing import FreshDatabase

ROOT = Path(__file__).parents[2]
SHOP = "tests.cli.shop:app"


class Ended(NamedTuple):
    """How the program ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        assert self.code in (0, 1), self.err
        return json.loads(self.out)


Run = Callable[..., Awaitable[Ended]]


@pytest.fixture
def environment(fresh: FreshDatabase, tmp_path: Path) -> dict[str, str]:
    """What the program finds around it."""
    pooled = {"DULY_DATABASE_DIRECT_URL": fresh.direct_url} if fresh.url != fresh.direct_url else {}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DULY_", "PYTEST_"))}
    return {**kept, **pooled, "DULY_DATABASE_URL": fresh.url, "DULY_HOME": str(tmp_path), "DULY_APP": SHOP}


@pytest.fixture
def duly(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """The program in this process."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # An application reads its settings once: each test has one of its own.
    monkeypatch.delitem(sys.modules, SHOP.partition(":")[0], raising=False)

    async def run(*words: object) -> Ended:
        capsys.readouterr()
        code = await asyncio.to_thread(run_program, [str(word) for word in words])
        return Ended(code, *capsys.readouterr())

    return run


class Service:
    """A command as a process. Whatever waits for a line that never comes waits for its end."""

    def __init__(
        self, environment: dict[str, str], *words: str, command: str = "worker", **settings: str
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duly.cli", command, *words],
            cwd=ROOT,
            env={**environment, "DULY_WORKER_DRAIN": "5", **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, start: str) -> str:
        """The rest of the next line that begins so."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith(start):
                return line.removeprefix(start).strip()
        raise AssertionError(f"no {start!r}: {self.process.stderr and self.process.stderr.read()}")

    def complaint(self, part: str) -> str:
        """The next line on standard error that says so."""
        assert self.process.stderr
        return next(line for line in self.process.stderr if part in line)

    def end(self) -> int:
        """Wait until it and all it started have ended; its code."""
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def service(environment: dict[str, str]) -> Callable[..., Any]:
    """A service that does not outlive its block."""

    @contextmanager
    def start(*words: str, **settings: str) -> Iterator[Service]:
        started = Service(environment, *words, **settings)
        try:
            yield started
        finally:
            # Its processes hear of it, and drain.
            started.process.kill()
            started.process.communicate(timeout=60)

    return start
