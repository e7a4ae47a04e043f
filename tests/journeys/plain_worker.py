"""A worker process with its default settings, and handlers that hang or block.

It prints `ready` when it works, and `started <attempt>` for each handler that starts. It works until its
stdin is closed.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import time
from datetime import timedelta
from typing import Any

from duly import Context, Duly, SyncContext


def make_app(url: str, blobs: str, **settings: Any) -> Duly:
    """Return the application, also for the test process."""
    app = Duly(database_url=url, blobs_url=blobs, **settings)

    @app.job("plain.hang")
    async def hang(ctx: Context, n: int) -> int:
        """Never return in the first attempt."""
        _started(ctx)
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    @app.job("plain.spin")
    async def spin(ctx: Context, seconds: float) -> int:
        """Block the event loop, and leave little time to other threads."""
        _started(ctx)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        return ctx.attempt

    @app.job("plain.grip")
    def grip(ctx: SyncContext, seconds: float) -> int:
        """Leave no time to other threads: called in this way, the C library holds the GIL."""
        _started(ctx)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ctypes.PyDLL(None).usleep(int(left * 1e6))
        return ctx.attempt

    return app


def _started(ctx: Context | SyncContext) -> None:
    print(f"started {ctx.attempt}", flush=True)


async def work(app: Duly, **choices: Any) -> None:
    """Work until stdin is closed."""
    async with app, app.worker(**choices):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    url, blobs, *beats = sys.argv[1:]
    choices = {"heartbeat": timedelta(seconds=float(beats[0]))} if beats else {}
    asyncio.run(work(make_app(url, blobs), **choices))
