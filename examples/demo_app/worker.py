"""One worker in a process of its own, so that it can be killed: `python -m demo_app.worker NAME`.

It works until SIGTERM, and never longer than its parent lives: the parent's end closes its stdin. On Linux
the kernel kills it too, because a frozen process does not notice.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys

from .application import create_app

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Be killed when the parent ends, even if frozen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


async def work(name: str) -> None:
    """Work until SIGTERM."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def orphaned() -> None:
        loop.remove_reader(0)
        stop.set()

    loop.add_reader(0, orphaned)
    app = create_app()
    async with app, app.worker(name=name, when_stuck=lambda: os._exit(1)) as working:
        await working.listening.wait()
        print("ready", flush=True)
        await stop.wait()
    os._exit(0)  # do not wait for threads of handlers


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    logging.basicConfig(level=logging.CRITICAL)
    asyncio.run(work(sys.argv[1]))
