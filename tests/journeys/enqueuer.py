"""A client that enqueues until it is killed, and prints each answer at once."""

from __future__ import annotations

import asyncio
import sys
import uuid

from duly import Actor, Duly, context


async def main(url: str, direct_url: str, blobs: str, org: str, name: str) -> None:
    app = Duly(
        database_url=url, database_direct_url=direct_url if direct_url != url else None, blobs_url=blobs
    )

    @app.job("step.take")
    async def take(actor: str, n: int) -> None: ...

    async with app:
        with context(org_id=uuid.UUID(org), actor=Actor.system(name)):
            print("ready", flush=True)
            n = 0
            while True:
                calls = [take.options(run_identity=[name, n + i]).call(name, n + i) for i in range(1 + n % 7)]
                handles = await app.enqueue_many(calls)
                print(*(handle.job_id for handle in handles), flush=True)
                n += len(calls)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
