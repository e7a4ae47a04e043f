"""Start workers and kill each at a random moment, many times. Forks, so that a start takes milliseconds."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading

from tests.journeys.worker_process import LEASE, make_app


async def work(urls: list[str], ready: int) -> None:
    """Work until killed."""
    app = make_app(*urls)
    async with app, app.worker(slots=4, lease=LEASE, heartbeat=LEASE / 4) as worker:
        await worker.loop_events.wait("claimed")
        os.write(ready, b".")
        await asyncio.Event().wait()


def kill_one(urls: list[str], dice: random.Random) -> None:
    """Kill a worker at a random moment shortly after its first claim."""
    done, ready = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(done)
        asyncio.run(work(urls, ready))
        os._exit(1)
    os.close(ready)
    alive = os.read(done, 1)
    threading.Event().wait(dice.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(done)
    print("killed" if alive else "died by itself", flush=True)


if __name__ == "__main__":
    *urls, kills, seed = sys.argv[1:]
    lots = random.Random(int(seed))
    for _ in range(int(kills)):
        kill_one(urls, lots)
