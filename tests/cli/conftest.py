"""Fixtures: `duly` in this process, and long-running commands as processes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duly.cli.program import run as run_program
from duly.testing import FreshDatabase

ROOT = Path(__file__).parents[2]
APP = "tests.cli.shop:app"


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        assert self.code in (0, 1), self.err
        return json.loads(self.out)


Run = Callable[..., Awaitable[CommandResult]]


@pytest.fixture
def environment(fresh: FreshDatabase, tmp_path: Path) -> dict[str, str]:
    """The environment variables of a command."""
    pooled = {"DULY_DATABASE_DIRECT_URL": fresh.direct_url} if fresh.url != fresh.direct_url else {}
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("DULY_", "PYTEST_"))
    }
    return {
        **inherited,
        **pooled,
        "DULY_DATABASE_URL": fresh.url,
        "DULY_HOME": str(tmp_path),
        "DULY_APP": APP,
    }


@pytest.fixture
def duly(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command in this process; return its result."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # An application reads its settings once: each test needs a new one.
    monkeypatch.delitem(sys.modules, APP.partition(":")[0], raising=False)

    async def run(*args: object) -> CommandResult:
        capsys.readouterr()
        code = await asyncio.to_thread(run_program, [str(arg) for arg in args])
        return CommandResult(code, *capsys.readouterr())

    return run


@pytest.fixture
def org_environment(org: uuid.UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select the org with DULY_ORG, as commands without --org do."""
    monkeypatch.setenv("DULY_ORG", str(org))


class Service:
    """A long-running command as a process. A read that finds no matching line fails when the process ends."""

    def __init__(
        self, environment: dict[str, str], *args: str, command: str = "worker", **settings: str
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duly.cli", command, *args],
            cwd=ROOT,
            env={**environment, "DULY_WORKER_DRAIN": "5", **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def read_until(self, prefix: str) -> str:
        """Return the rest of the next line of output with this prefix."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith(prefix):
                return line.removeprefix(prefix).strip()
        raise AssertionError(f"no {prefix!r}: {self.process.stderr and self.process.stderr.read()}")

    def read_error(self, part: str) -> str:
        """Return the next line on standard error that contains this text."""
        assert self.process.stderr
        return next(line for line in self.process.stderr if part in line)

    def wait_for_exit(self) -> int:
        """Wait until the process and its children have ended; return its exit code."""
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def service(environment: dict[str, str]) -> Callable[..., Any]:
    """Start a service as a context manager that kills it at the end."""

    @contextmanager
    def start(*args: str, **settings: str) -> Iterator[Service]:
        started = Service(environment, *args, **settings)
        try:
            yield started
        finally:
            # Its child processes notice, and drain.
            started.process.kill()
            started.process.communicate(timeout=60)

    return start
