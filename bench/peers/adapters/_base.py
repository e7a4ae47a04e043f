"""What both kinds of adapters have: what they say of themselves, and the sizes that are the same for all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.peers.adapters._board import lines_path

BATCH = 500
PACED_AT_ONCE = 20
PAUSE = 0.02
WARM_UPS = 3


class Base:
    """What an adapter says of itself."""

    name = ""
    package = ""
    language = "Python"
    store = "PostgreSQL"
    settings = ""
    persists = ""

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop to run in; some systems are at their best with another."""
        return asyncio.new_event_loop()

    def about(self) -> dict[str, Any]:
        """The system in a few words."""
        words = ("name", "language", "store", "settings", "persists")
        return {"version": metadata.version(self.package)} | {word: getattr(self, word) for word in words}


def parts(jobs: int) -> Iterator[Sequence[int]]:
    """The numbers below `jobs` in parts as the sustained measure sends them."""
    return (range(start, min(start + BATCH, jobs)) for start in range(0, jobs, BATCH))


def noted() -> int:
    """How much the handlers have written on the board's lines."""
    path = Path(lines_path())
    return path.stat().st_size if path.exists() else 0
