"""Shared by both kinds of adapters: their description, and the sizes that are the same for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.peers.adapters._board import lines_path

BATCH = 500
PACED_AT_ONCE = 20
PAUSE = 0.02
WARM_UPS = 3


class Base:
    """The description of an adapter."""

    name = ""
    package = ""
    language = "Python"
    store = "PostgreSQL"
    settings = ""
    persists = ""
    clock: Callable[[], None] = staticmethod(lambda: None)
    """Called right before the measured part: the harness reads its counters in it."""

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop to run in; some systems prefer another one."""
        return asyncio.new_event_loop()

    def about(self) -> dict[str, Any]:
        """Return the description of the system."""
        words = ("name", "language", "store", "settings", "persists")
        return {"version": metadata.version(self.package)} | {word: getattr(self, word) for word in words}


def parts(jobs: int) -> Iterator[Sequence[int]]:
    """Split the numbers below `jobs` into the batches of the sustained measure."""
    return (range(start, min(start + BATCH, jobs)) for start in range(0, jobs, BATCH))


def noted() -> int:
    """Return the size of the lines file of the board."""
    path = Path(lines_path())
    return path.stat().st_size if path.exists() else 0
