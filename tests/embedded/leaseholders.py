"""Processes that hold leases, and functions that list the processes of a home."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg

import duly

# The directories of the imported packages, for an interpreter outside this virtual environment.
PYTHONPATH = os.pathsep.join(str(Path(package.__path__[0]).resolve().parent) for package in (duly, psycopg))

_SCRIPT = """
import sys, pathlib, duly.embedded
with duly.embedded.open_server(pathlib.Path(sys.argv[1])) as server:
    print(server.dsn(), flush=True)
    sys.stdin.read()
"""


def wait_until(predicate: Callable[[], bool], timeout: float = 30) -> None:
    deadline = time.monotonic() + timeout
    while not predicate():
        assert time.monotonic() < deadline, f"condition not met within {timeout} s: {predicate}"
        threading.Event().wait(0.02)


class Leaseholder:
    """A process that opens the server of a home and holds its lease until `leave` or `kill`."""

    def __init__(
        self,
        home: Path,
        *,
        python: str = sys.executable,
        user: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [python, "-c", _SCRIPT, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            env={**os.environ, "PYTHONPATH": PYTHONPATH, **(env or {})},
        )

    def dsn(self) -> str:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        return self._process.stdout.readline().strip() or self._process.stderr.read()

    def leave(self) -> None:
        self._process.communicate(timeout=30)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def supervisors(home: Path) -> list[int]:
    return _running(lambda command: "embedded/launch.py" in command and f'"home": "{home}"' in command)


def postmasters(parent: Path) -> list[int]:
    return _running(lambda command: f"postgres -D {parent}/pg" in command)


def _running(matches: Callable[[str], bool]) -> list[int]:
    """Return the ids of the processes whose command line matches: from /proc, because `ps` may be missing."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and (command := _command(entry)) and matches(command)
    ]


def _command(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""  # it has just ended
