"""The harness's side of the score board: made empty, read while handlers write to it."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

from bench.peers.adapters._board import PLACE_BYTES, PLACES


@dataclass(frozen=True)
class SlowStart:
    """A job of one second has started."""

    number: int
    at_ns: int


class Scores:
    """What the handlers of a measurement noted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines_path = Path(f"{path}.lines")
        path.write_bytes(bytes(PLACES * PLACE_BYTES))
        with path.open("r+b") as file:
            self.cells = memoryview(mmap.mmap(file.fileno(), PLACES * PLACE_BYTES)).cast("Q")

    def clear(self) -> None:
        """Forget everything; no worker runs."""
        for cell in range(len(self.cells)):
            self.cells[cell] = 0
        self.lines_path.write_bytes(b"")

    def column(self, number: int) -> list[int]:
        """One number of every place."""
        return [self.cells[place * PLACE_BYTES // 8 + number] for place in range(PLACES)]

    def done(self) -> int:
        """No-op jobs that have started, in all processes."""
        return sum(self.column(0))

    def first_ns(self) -> int:
        """When the first of them started, or 0."""
        return min((at for at in self.column(1) if at), default=0)

    def words(self, kind: str) -> list[list[str]]:
        """The lines of one kind; a line that is still being written is left out."""
        text = self.lines_path.read_text()
        whole = text[: text.rfind("\n") + 1]
        return [words for line in whole.splitlines() if (words := line.split()) and words[0] == kind]

    def latencies_ms(self) -> list[float]:
        """Milliseconds from enqueue to start, in the order of starts."""
        return [int(words[1]) / 1e6 for words in self.words("stamp")]

    def slow_starts(self) -> list[SlowStart]:
        """All starts of jobs of one second."""
        return [SlowStart(int(words[1]), int(words[2])) for words in self.words("slow")]
