"""One worker, in a process of its own, so that it can be killed: `python -m world.worker NAME`.

It works until SIGTERM, and never longer than its parent lives: the parent's end closes its standard input. On
Linux the kernel sees to that as well, for a process that is frozen hears of nothing.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys

from .application import make

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Be killed when the parent ends, even frozen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


async def work(name: str) -> None:
    """Until told to stop."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def orphaned() -> None:
        loop.remove_reader(0)
        stop.set()

    loop.add_reader(0, orphaned)
    app = make()
    async with app, app.worker(name=name, when_stuck=lambda: os._exit(1)) as working:
        await working.listening.wait()
        print("ready", flush=True)
        await stop.wait()
    os._exit(0)  # no thread of a handler keeps us


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    logging.basicConfig(level=logging.CRITICAL)
    asyncio.run(work(sys.argv[1]))
