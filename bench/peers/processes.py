"""Child programs: answers with a time limit, killing of whole trees, resource usage of a tree."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, ClassVar

SLICE = 0.5
READER_TIMEOUT = 10.0
TICKS = os.sysconf("SC_CLK_TCK")


class Hung(Exception):
    """A program did not answer within the limit, or exited."""


class Program:
    """One run of an adapter; answers are lines of JSON, other output goes to the log."""

    orphaned: ClassVar[float] = 0.0
    """CPU seconds of killed programs' children, which are counted by no parent."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str], log: IO[bytes]) -> None:
        self.words = " ".join(command[command.index("-m") + 2 if "-m" in command else 2 :])
        self.cwd = cwd
        self.log = Path(log.name)
        self.log_start = self.log.stat().st_size
        self.started_ns = time.monotonic_ns()
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        self.answers: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        self.came = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def pid(self) -> int:
        """The process at the root of the tree."""
        return self.process.pid

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._put(line)
        self._put(b"")

    def _put(self, line: bytes) -> None:
        self.answers.put((time.monotonic_ns(), line))
        self.came.set()

    def answer(
        self, limit: float, meanwhile: Callable[[], None] = lambda: None
    ) -> tuple[int, dict[str, Any]]:
        """Return the next line and its time; `meanwhile` is called regularly and may raise."""
        deadline = time.monotonic() + limit
        while self.answers.empty():
            if time.monotonic() > deadline:
                raise Hung(f"`{self.words}` gave no answer within {limit:.0f} s")
            meanwhile()
            self.came.wait(SLICE)
        self.came.clear()
        came_ns, line = self.answers.get()
        if not line:
            raise Hung(f"`{self.words}` ended with code {self.process.wait()}{self.last_words()}")
        try:
            said: dict[str, Any] = json.loads(line)
        except ValueError:
            raise Hung(f"`{self.words}` said {line[:80]!r}") from None
        return came_ns, said

    def last_words(self) -> str:
        """Return the last line in the log, as a reason that does not tell where the project lies."""
        text = self.log.read_bytes()[self.log_start :].decode(errors="replace")
        said = text.replace(f"{self.cwd}/", "").split("\n")
        lines = [line.strip() for line in said if line.strip()]
        return f": {lines[-1][:200]}" if lines else ""

    def tell(self, word: str) -> None:
        """Write one line to its stdin."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()

    def kill(self) -> None:
        """Kill its whole tree, including processes that left the process group."""
        family = list(tree(self.pid))
        Program.orphaned += cpu_seconds(*family[1:])
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join(READER_TIMEOUT)
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()


def tree(root: int) -> Iterator[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [root] if stat(root) else []
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, [])


def stat(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat from the state on; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def parent_of(pid: int) -> int:
    """Return the parent of a process."""
    return int(stat(pid)[1])


def cpu_seconds(*roots: int) -> float:
    """Return the CPU time of these trees, including children that have exited."""
    used = (stat(pid)[11:15] for pid in {pid for root in roots for pid in tree(root)})
    return sum(int(ticks) for fields in used for ticks in fields) / TICKS


def peak_memory_mb(root: int) -> float:
    """Return the sum of the peak resident sizes of a tree."""
    total = 0
    for pid in tree(root):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total += int(line.split()[1])
    return total / 1024
