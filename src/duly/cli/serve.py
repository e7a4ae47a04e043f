"""`duly serve`: the HTTP service of an application, in this process."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duly.cli.application import find
from duly.cli.options import AppName, AsJson
from duly.cli.show import print_json
from duly.cli.verbosity import HowMuch, write_logs
from duly.model.errors import ConfigurationError
from duly.wiring import Duly

if TYPE_CHECKING:
    import uvicorn

    from duly.console import Extras

PORT = 8321
_GRACE = 10
Host = Annotated[str, typer.Option("--host", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any that is free.")]


def serve(
    app: AppName = None,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    log_level: HowMuch = None,
    as_json: AsJson = False,
) -> None:
    """Serve the HTTP API and the pages until SIGTERM or Ctrl-C. Jobs are done by `duly worker`."""
    found = find(app, needed=True)
    write_logs(found.settings, log_level, as_json=as_json)
    asyncio.run(_serve(found, host, port, as_json=as_json))


async def _serve(app: Duly, host: str, port: int, *, as_json: bool) -> None:
    stop = told_to_stop()
    async with app, listening(app, host, port) as address, app.watched():
        if as_json:
            print_json({"event": "ready", "url": address})
        else:
            print(f"ready {address}", flush=True)
        await stop.wait()


def told_to_stop() -> asyncio.Event:
    """Set by SIGTERM and Ctrl-C."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


@asynccontextmanager
async def listening(app: Duly, host: str, port: int, *, extras: Extras | None = None) -> AsyncIterator[str]:
    """The service of an application, at work; its address."""
    api = app.http_app(extras=extras)
    # What was loaded stays. Looking at all of it again and again kept requests waiting for 80 ms.
    gc.collect()
    gc.freeze()
    with _socket(host, port) as taken:
        server = _server(api)
        running = asyncio.create_task(server.serve([taken]), name="duly-http")
        try:
            yield f"http://{_named(host)}:{taken.getsockname()[1]}"
        finally:
            await api.state.service.close()  # streams end, and their readers go on elsewhere
            server.should_exit = True
            await running


def _server(api: Any) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        """Signals are ours."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    timing: dict[str, Any] = {"timeout_graceful_shutdown": _GRACE, "timeout_keep_alive": 30}
    return Server(uvicorn.Config(api, lifespan="off", **quiet, **timing))


def _socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        taken = socket.create_server((host, port), family=family, backlog=2048)
        # asyncio sets it for sockets of its own only; without it the body of an answer waits for an ACK.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return taken
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error}", field="port", fix="choose another with --port"
        ) from None


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host
