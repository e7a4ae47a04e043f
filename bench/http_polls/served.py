"""The process under load: the service and a bare route."""

from __future__ import annotations

import asyncio
import socket
import uuid
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import uvicorn
from fastapi import FastAPI

from duly import Actor, Context, Duly, context
from duly.features.api_keys.service import ApiKeys
from duly.http.application import create_app
from duly.http.options import HttpOptions

KINDS = ("bare", "status")
JOBS = 16
"""Each client polls its own job, as real users do."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The port of the service, and the raw requests of each kind."""

    port: int
    requests: dict[str, list[bytes]]


def serve(url: str, org: str, home: str, parent: Connection) -> None:
    """Serve until the parent sends a message."""
    asyncio.run(_serve(url, uuid.UUID(org), home, parent))


async def _serve(url: str, org: uuid.UUID, home: str, parent: Connection) -> None:
    app = Duly(database_url=url, blobs_url=f"{home}/blobs", maintenance=False)

    begun = asyncio.Semaphore(0)

    @app.job("bench.run", timeout=timedelta(hours=1))
    async def run(ctx: Context, number: int) -> None:
        await ctx.partial({"region": "DE"}, percent=40)
        begun.release()
        await asyncio.Event().wait()

    async with app:
        await app.create_org(org, "Bench")
        key = await ApiKeys(app).create(
            org, "bench", ["jobs:read"], actor=Actor.system("bench"), reason="bench"
        )
        with context(org_id=org, actor=Actor.user("u")):
            jobs = [await run.enqueue(number) for number in range(JOBS)]
        async with app.worker(drain=timedelta(0)):
            for _ in jobs:
                await begun.acquire()
            await _listen(app, [f"/v1/jobs/{job.job_id}" for job in jobs], key.text, parent)


async def _listen(app: Duly, paths: list[str], key: str, parent: Connection) -> None:
    api, bare = create_app(app, HttpOptions(requests_per_second=1e9, burst=10**9)), _bare(app)

    async def either(scope: Any, receive: Any, send: Any) -> None:
        await (bare if scope["path"] == "/bare" else api)(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as `duly serve` does
    server = uvicorn.Server(uvicorn.Config(either, log_level="error", access_log=False, lifespan="off"))
    running = asyncio.create_task(server.serve([listener]))
    ask = "GET {} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\r\n"
    polls = [ask.format(path, key).encode() for path in paths]
    requests = {"bare": [ask.format("/bare", key).encode()], "status": polls}
    parent.send(Ready(listener.getsockname()[1], requests))
    await asyncio.to_thread(parent.recv)
    server.should_exit = True
    await running


def _bare(app: Duly) -> FastAPI:
    """The simplest possible route."""
    made = FastAPI()

    @made.get("/bare")
    async def one() -> dict[str, int]:
        pool = (await app.resources()).database._pool
        conn = await pool.getconn()
        try:
            row = await (await conn.execute("select 1")).fetchone()
        finally:
            await pool.putconn(conn)
        assert row is not None
        return {"one": row[0]}

    return made
