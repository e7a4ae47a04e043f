"""Relays and delivers, and is killed at a random moment, many times. Forks, so that a start costs little.

Half of the lives end at a step: before or after the n-th statement, commit or message. The others end some
hundredths of a second after the first message. What each was at is printed, a line for each.
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
from duly.features.webhooks.allowed_urls import AllowedUrls
from duly.features.webhooks.deliverer import Deliverer, DeliveryOptions
from duly.features.webhooks.sender import Sender, trusted_certificates
from duly.maintenance.loop import run_chores

LEASE = timedelta(seconds=0.5)
_LONGEST = 5.0


def make_app(url: str, direct_url: str, blobs: str) -> Duly:
    """The application, also for the tests' own process."""
    pooled = direct_url if direct_url != url else None
    return Duly(database_url=url, database_direct_url=pooled, blobs_url=blobs, maintenance=False)


def chores(app: Duly) -> list[Any]:
    """With a lease that is soon over."""
    options = DeliveryOptions(timeout=timedelta(seconds=5), lease=LEASE)
    return [Relay(app, batch_size=50), Deliverer(app, AllowedUrls(["127.0.0.1"]), options)]


class Fuse:
    """Counts steps, and ends the process at the last."""

    def __init__(self, steps: int | None, say: int) -> None:
        self._steps = steps
        self._say = say

    def lay(self, owner: type, name: str) -> None:
        """Count what this does, before and after."""
        what: Callable[..., Any] = getattr(owner, name)

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self._step(f"before {name}")
            found = await what(*args, **kwargs)
            self._step(f"after {name}")
            return found

        setattr(owner, name, counted)

    def _step(self, name: str) -> None:
        if self._steps is None and name == "before send":
            os.write(self._say, b"at any time\n")
        elif self._steps is not None:
            self._steps -= 1
            if self._steps == 0:
                os.write(self._say, f"{name}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)


async def live(where: list[str], steps: int | None, say: int) -> None:
    """Relay and deliver until killed."""
    fuse = Fuse(steps, say)
    fuse.lay(psycopg.AsyncCursor, "execute")
    fuse.lay(psycopg.AsyncConnection, "commit")
    fuse.lay(Sender, "send")
    async with make_app(*where) as app:
        await run_chores(chores(app), asyncio.Event())


def kill_one(where: list[str], dice: random.Random) -> None:
    """One life, to its end."""
    steps = dice.randint(1, 200) if dice.random() < 0.5 else None
    heard, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(heard)
        asyncio.run(live(where, steps, say))
        os._exit(1)
    os.close(say)
    alive = bool(select.select([heard], [], [], _LONGEST)[0])
    said = os.read(heard, 100).decode().partition("\n")[0] if alive else "idle"
    if steps is None:
        select.select([], [], [], dice.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(heard)
    print(said, flush=True)


if __name__ == "__main__":
    *places, kills, seed = sys.argv[1:]
    lots = random.Random(int(seed))
    trusted_certificates()  # once for all of them
    for _ in range(int(kills)):
        kill_one(places, lots)
