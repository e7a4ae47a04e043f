"""A process of this release or of the previous one, by the public API that both have.

`migrate` upgrades the database; `work` runs a worker until stdin is closed, and prints `ready`; `enqueue`
submits jobs of both types, when it reads a line.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from datetime import timedelta

from duly import Actor, Context, Duly, RetryPolicy, context

LEASE = timedelta(seconds=2)
EFFECT = "insert into public.effects (job_id) values (%s)"
AT_ONCE = RetryPolicy(max_attempts=50, base=timedelta(milliseconds=1))


def make_app(url: str, blobs: str) -> Duly:
    """Return the application, also for the test process."""
    app = Duly(database_url=url, blobs_url=blobs)

    @app.job("roll.plain", retry=AT_ONCE)
    async def plain(n: int) -> int:
        """Succeed, and leave a result."""
        return n

    @app.job("roll.effect", retry=AT_ONCE)
    async def effect(ctx: Context, n: int) -> int:
        """Write to a table of the application, in the transaction of the completion."""
        async with ctx.transaction() as conn:
            await conn.execute(EFFECT, [ctx.job.job_id])
        return n

    return app


async def enqueue(app: Duly, org: uuid.UUID, first: int, count: int) -> None:
    """Enqueue jobs of both types, half of each."""
    plain, effect = app.registry.get("roll.plain"), app.registry.get("roll.effect")
    with context(org_id=org, actor=Actor.user("u1")):
        for n in range(first, first + count, 20):
            await app.enqueue_many([kind.call(n + i) for i in range(10) for kind in (plain, effect)])


async def work(app: Duly) -> None:
    """Work until stdin is closed."""
    async with app, app.worker(slots=30, lease=LEASE, heartbeat=LEASE / 4):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def submit(app: Duly, org: str, first: str, count: str) -> None:
    """Enqueue when a line arrives on stdin: an earlier release can only start before an upgrade."""
    async with app:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await enqueue(app, uuid.UUID(org), int(first), int(count))


if __name__ == "__main__":
    verb, url, blobs, *rest = sys.argv[1:]
    if verb == "migrate":
        Duly(database_url=url, blobs_url=blobs).migrate()
    else:
        asyncio.run({"work": work, "enqueue": submit}[verb](make_app(url, blobs), *rest))
