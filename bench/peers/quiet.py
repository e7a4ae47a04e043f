"""Quiet: how much of the machine processes other than the benchmark's use, and waiting until it is little."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.peers.processes import TICKS

WINDOW = 1.0
"""Seconds over which the use is measured while waiting."""

QUIET = 0.1
"""Cores that others may use before a measurement begins."""

BUSY = 0.25
"""Cores that others may use during a measurement; more than before it, as the kernel's own work counts."""


@dataclass(frozen=True)
class Sample:
    """CPU seconds used so far: by everything, and by the benchmark."""

    at: float
    machine: float
    own: float

    def others_since(self, before: Sample) -> float:
        """Return the cores that others have used on average; time stolen by other machines is others' use."""
        passed = self.at - before.at
        used = (self.machine - before.machine) - (self.own - before.own)
        return max(0.0, used / passed) if passed > 0 else 0.0


def machine_seconds(stat: str) -> float:
    """Return the CPU seconds of all cores in the text of /proc/stat: all but idle and waiting for a disk."""
    user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, stat.split()[1:9])
    return (user + nice + system + irq + softirq + stolen) / TICKS


class Quiet:
    """Watches the machine for a run."""

    def __init__(
        self,
        own: Callable[[], float],
        *,
        wait: float = 20.0,
        budget: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        machine: Callable[[], float] = lambda: machine_seconds(Path("/proc/stat").read_text()),
    ) -> None:
        """Wait at most `wait` seconds for one measurement, and `budget` seconds in a run."""
        self.own, self.clock, self.pause, self.machine = own, clock, pause, machine
        self.wait = wait
        self.budget = budget
        self.waited = 0.0

    def sample(self) -> Sample:
        """Read the counters."""
        own = self.own()
        return Sample(self.clock(), self.machine(), own)

    def until_quiet(self) -> float:
        """Wait until others are quiet, or for the limit; return the cores they used in the last second."""
        limit = min(self.wait, self.budget - self.waited)
        start = self.clock()
        while True:
            before = self.sample()
            self.pause(WINDOW)
            after = self.sample()
            others = after.others_since(before)
            if others <= QUIET or after.at - start >= limit:
                self.waited += after.at - start - (WINDOW if others <= QUIET else 0.0)
                return others
