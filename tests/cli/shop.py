"""A sample application for the tests of the command line."""

from __future__ import annotations

import asyncio
import gc
import os
from datetime import timedelta

from duly import Context, Duly, Fail, RetryPolicy

app = Duly()
AT_ONCE = RetryPolicy(max_attempts=3, delays=(timedelta(milliseconds=1),))


@app.job("shop.greet", schedulable=True)
async def greet(name: str) -> str:
    return f"Hello {name}"


@app.job("shop.sell")
async def sell() -> None:
    raise Fail("out of stock", code="shop.empty")


@app.job("shop.crash", retry=AT_ONCE)
async def crash(ctx: Context) -> int:
    """End the whole process in the first attempt."""
    if ctx.attempt == 1:
        os._exit(9)
    return ctx.attempt


@app.job("shop.collector")
async def collector() -> list[int]:
    """Return the threshold of the garbage collector, and the number of objects that it leaves out."""
    return [gc.get_threshold()[0], gc.get_freeze_count()]


@app.job("shop.wait")
async def wait() -> None:
    """Print when it runs, and never return."""
    print("waiting", flush=True)
    await asyncio.Event().wait()
