"""Relay and deliver in a process that is killed at a random moment, many times; forks start quickly.

Half of the processes are killed at a step: before or after the n-th statement, commit or message. The others
are killed some hundredths of a second after the first message. The point of each kill is printed as a line.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg

from duly import Duly
from duly.features.events.relay import Relay
from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.deliverer import Deliverer, DeliveryOptions
from duly.features.webhooks.sender import Sender, trusted_certificates
from duly.maintenance.loop import run_chores

LEASE = timedelta(seconds=0.5)
_MAX_IDLE_SECONDS = 5.0


def make_app(url: str, direct_url: str, blobs: str) -> Duly:
    """Create the application, also for the process of the test."""
    pooled = direct_url if direct_url != url else None
    return Duly(database_url=url, database_direct_url=pooled, blobs_url=blobs, maintenance=False)


def chores(app: Duly) -> list[Any]:
    """Return the relay, and a deliverer with a short lease."""
    options = DeliveryOptions(timeout=timedelta(seconds=5), lease=LEASE)
    return [Relay(app, batch_size=50), Deliverer(app, AllowedUrls(["127.0.0.1"]), options)]


class Fuse:
    """Counts steps, and kills the process at the last one."""

    def __init__(self, steps: int | None, writer: int) -> None:
        self._steps = steps
        self._writer = writer

    def lay(self, owner: type, name: str) -> None:
        """Count a step before and after each call of a method."""
        method: Callable[..., Any] = getattr(owner, name)

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self._step(f"before {name}")
            result = await method(*args, **kwargs)
            self._step(f"after {name}")
            return result

        setattr(owner, name, counted)

    def _step(self, name: str) -> None:
        if self._steps is None and name == "before send":
            os.write(self._writer, b"at any time\n")
        elif self._steps is not None:
            self._steps -= 1
            if self._steps == 0:
                os.write(self._writer, f"{name}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)


async def live(where: list[str], steps: int | None, writer: int) -> None:
    """Relay and deliver until killed."""
    fuse = Fuse(steps, writer)
    fuse.lay(psycopg.AsyncCursor, "execute")
    fuse.lay(psycopg.AsyncConnection, "commit")
    fuse.lay(Sender, "send")
    async with make_app(*where) as app:
        await run_chores(chores(app), asyncio.Event())


def kill_one(where: list[str], dice: random.Random) -> None:
    """Start a process and kill it; print the point of the kill."""
    steps = dice.randint(1, 200) if dice.random() < 0.5 else None
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        asyncio.run(live(where, steps, writer))
        os._exit(1)
    os.close(writer)
    is_active = bool(select.select([reader], [], [], _MAX_IDLE_SECONDS)[0])
    point = os.read(reader, 100).decode().partition("\n")[0] if is_active else "idle"
    if steps is None:
        select.select([], [], [], dice.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    print(point, flush=True)


if __name__ == "__main__":
    *urls, kills, seed = sys.argv[1:]
    random_points = random.Random(int(seed))
    trusted_certificates()  # once for all of them
    for _ in range(int(kills)):
        kill_one(urls, random_points)
