"""The harness's side of the score board: creates it, and reads it while handlers write."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

from bench.peers.adapters._board import SLOT_BYTES, SLOTS


@dataclass(frozen=True)
class SlowStart:
    """The start of a job of one second."""

    number: int
    at_ns: int


class Scores:
    """The records of the handlers of a measurement."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines_path = Path(f"{path}.lines")
        path.write_bytes(bytes(SLOTS * SLOT_BYTES))
        with path.open("r+b") as file:
            self.cells = memoryview(mmap.mmap(file.fileno(), SLOTS * SLOT_BYTES)).cast("Q")

    def clear(self) -> None:
        """Clear all records; no worker may be running."""
        for cell in range(len(self.cells)):
            self.cells[cell] = 0
        self.lines_path.write_bytes(b"")

    def column(self, number: int) -> list[int]:
        """Return one number of every slot."""
        return [self.cells[slot * SLOT_BYTES // 8 + number] for slot in range(SLOTS)]

    def done(self) -> int:
        """Count the no-op jobs that have started, in all processes."""
        return sum(self.column(0))

    def first_ns(self) -> int:
        """Return the start of the first one, or 0."""
        return min((at for at in self.column(1) if at), default=0)

    def words(self, kind: str) -> list[list[str]]:
        """Return the lines of one kind; an incomplete line is left out."""
        text = self.lines_path.read_text()
        whole = text[: text.rfind("\n") + 1]
        return [words for line in whole.splitlines() if (words := line.split()) and words[0] == kind]

    def latencies_ms(self) -> list[float]:
        """Milliseconds from enqueue to start, in the order of starts."""
        return [int(words[1]) / 1e6 for words in self.words("stamp")]

    def slow_starts(self) -> list[SlowStart]:
        """Return all starts of jobs of one second."""
        return [SlowStart(int(words[1]), int(words[2])) for words in self.words("slow")]
