"""A worker process to be killed, stopped and woken.

It prints `ready` when it works, `started <attempt>` for each handler that starts, `lost` when it was declared
lost, and `stuck` when it considers its loop blocked for good. `go` on its stdin lets waiting handlers return.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path

from duly import Context, Duly, RetryPolicy

LEASE = timedelta(seconds=0.6)
EFFECT = "insert into public.effects (org_id, job_id) values (%s, %s)"


def make_app(url: str, direct_url: str, blobs: str) -> Duly:
    """Return the application of these tests, also for the test process."""
    app = Duly(
        database_url=url,
        database_direct_url=direct_url if direct_url != url else None,
        blobs_url=blobs,
        maintenance=False,
    )
    app.gone = asyncio.Event()  # type: ignore[attr-defined]

    async def wait(ctx: Context, ledger: str, n: int) -> str:
        """Wait without end in the first attempt."""
        with Path(ledger).open("a") as file:
            file.write(f"{n} {ctx.attempt}\n")
        print(f"started {ctx.attempt}", flush=True)
        if ctx.attempt == 1:
            await app.gone.wait()  # type: ignore[attr-defined]
        return f"attempt {ctx.attempt}"

    @app.job("step.hang")
    async def hang(ctx: Context, ledger: str, n: int) -> str:
        return await wait(ctx, ledger, n)

    @app.job("step.hasty", timeout=LEASE / 2)
    async def hasty(ctx: Context, ledger: str, n: int) -> str:
        return await wait(ctx, ledger, n)

    @app.job("step.effect", retry=RetryPolicy(max_attempts=100, base=timedelta(milliseconds=1)))
    async def effect(ctx: Context, n: int) -> int:
        async with ctx.transaction() as conn:
            await conn.execute(EFFECT, [ctx.job.org_id, ctx.job.job_id])
        return n

    return app


def stuck() -> None:
    print("stuck", flush=True)


async def work(app: Duly, slots: int) -> None:
    """Work until stdin is closed."""
    choices = {"lease": LEASE, "heartbeat": LEASE / 4, "stop_grace": LEASE, "when_stuck": stuck}
    async with app, app.worker(slots=slots, **choices) as worker:
        print("ready", flush=True)
        lost = asyncio.create_task(worker.loop_events.wait("declared lost"))
        lost.add_done_callback(lambda _: print("lost", flush=True))
        while await asyncio.to_thread(sys.stdin.readline):
            app.gone.set()  # type: ignore[attr-defined]
        lost.cancel()


if __name__ == "__main__":
    *where, slots = sys.argv[1:]
    asyncio.run(work(make_app(*where), int(slots)))
    os._exit(0)
