"""The service in a separate process, as `duly serve` runs it."""

from __future__ import annotations

import asyncio
import gc
import socket
from multiprocessing.connection import Connection
from typing import NamedTuple

import uvicorn
from bench.console.fill import Stock
from bench.console.tour import Stop, tour

from duly import Actor, Duly
from duly.console import install
from duly.core.job import SYSTEM_ORG
from duly.features.api_keys.service import ApiKeys
from duly.http.application import create_app
from duly.http.options import HttpOptions


class Ready(NamedTuple):
    """The port of the service, the API keys and the pages to request."""

    port: int
    keys: dict[str, str]
    stops: list[Stop]


def serve(url: str, stock: Stock, home: str, parent: Connection) -> None:
    """Serve until the parent sends a message."""
    asyncio.run(_serve(url, stock, home, parent))


async def _serve(url: str, stock: Stock, home: str, parent: Connection) -> None:
    app = Duly(database_url=url, blobs_url=f"{home}/blobs", maintenance=False)
    app.include_documents()
    for name in ("report.build", "invoice.send", "import.rows", "plan.route"):
        app.job(name)(_nothing)
    async with app:
        by = {"actor": Actor.system("bench"), "reason": "bench"}
        scopes = ["jobs:read", "jobs:write", "operate", "admin"]
        admin = await ApiKeys(app).create(stock.large, "bench", scopes, **by)
        platform = await ApiKeys(app).create(SYSTEM_ORG, "bench", ["platform"], **by)
        api = create_app(app, HttpOptions(requests_per_second=1e9, burst=10**9))
        install(api)
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = uvicorn.Server(uvicorn.Config(api, log_level="error", access_log=False, lifespan="off"))
        running = asyncio.create_task(server.serve([listener]))
        gc.collect()
        gc.freeze()  # as `duly serve` does
        keys = {"admin": admin.text, "platform": platform.text}
        parent.send(Ready(listener.getsockname()[1], keys, list(tour(api, stock))))
        await asyncio.to_thread(parent.recv)
        server.should_exit = True
        await running


async def _nothing(region: str = "", rows: int = 0, password: str = "") -> None:
    """A job type that is never run here."""
