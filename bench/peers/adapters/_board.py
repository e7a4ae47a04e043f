"""The score board: handlers record their starts at a cost that does not disturb the measurement.

The file BENCH_BOARD has a slot of 64 bytes per worker process, selected by BENCH_SLOT: the number of no-op
jobs, and the start of the first and the last of them (CLOCK_MONOTONIC, nanoseconds). Rarer records are lines
of the file BENCH_BOARD + ".lines".
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from functools import cached_property

SLOTS = 64
SLOT_BYTES = 64


class Board:
    """The records of this process; opened at the first one, so also in a forked child."""

    @cached_property
    def cells(self) -> memoryview:
        """The numbers of this process: count, first start, last start."""
        with open(os.environ["BENCH_BOARD"], "r+b") as file:  # noqa: PTH123
            shared = mmap.mmap(file.fileno(), SLOTS * SLOT_BYTES)
        start = int(os.environ.get("BENCH_SLOT", "0")) * SLOT_BYTES
        return memoryview(shared)[start : start + SLOT_BYTES].cast("Q")

    @cached_property
    def lock(self) -> threading.Lock:
        """Handlers may run in threads."""
        return threading.Lock()

    @cached_property
    def lines(self) -> int:
        """The lines file, open for appending."""
        return os.open(lines_path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def noop(self) -> None:
        """A no-op job has started."""
        with self.lock:
            cells = self.cells
            now = time.monotonic_ns()
            if not cells[0]:
                cells[1] = now
            cells[0] += 1
            cells[2] = now

    def stamp(self, sent_ns: int) -> None:
        """A job that carries the time of its enqueue has started; 0 is a warm-up and is not counted."""
        line = f"stamp {time.monotonic_ns() - sent_ns}" if sent_ns else "warm"
        os.write(self.lines, f"{line}\n".encode())

    def slow(self, number: int) -> None:
        """A job of one second has started."""
        os.write(self.lines, f"slow {number} {time.monotonic_ns()} {os.getpid()}\n".encode())

    def note(self, kind: str, value: int) -> None:
        """Record the start of a job of any of the three kinds."""
        if kind == "noop":
            self.noop()
        elif kind == "stamp":
            self.stamp(value)
        else:
            self.slow(value)


def lines_path() -> str:
    """The path of the lines file."""
    return os.environ["BENCH_BOARD"] + ".lines"


board = Board()
