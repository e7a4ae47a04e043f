"""`duly serve`: the HTTP service. `duly up`: database, service and worker in one process, to try Duly."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.app_loader import load_app
from duly.cli.garbage_collector import freeze_loaded_objects
from duly.cli.options import AppName, AsJson, LoadedApp, LogLevel, LogLevelOption, acting, write_logs
from duly.cli.output import print_json
from duly.core.errors import ConfigurationError
from duly.core.principal import ROLE_SCOPES, Role

if TYPE_CHECKING:
    import uvicorn

    from duly.console import Extras

PORT = 8321
_SHUTDOWN_TIMEOUT = 10
_DEMO_ORG = UUID("d0000000-0000-4000-8000-000000000001")
_KEY_LIFETIME = timedelta(hours=12)
Host = Annotated[str, typer.Option("--host", help="Listen on this address.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Listen on this port; 0 for any free.")]


@dataclass(frozen=True, slots=True)
class Running:
    """A running service, and how to log in."""

    url: str
    org_id: UUID
    key: str = field(repr=False)

    @property
    def login(self) -> str:
        """A link that logs in; browsers do not send the key, as it follows the #."""
        return f"{self.url}/login#key={self.key}"


def serve(
    app: AppName = None,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    log_level: LogLevelOption = None,
    as_json: AsJson = False,
) -> None:
    """Serve the HTTP API and the console until SIGTERM or Ctrl-C.

    Jobs are run by `duly worker`.
    """
    loaded = load_app(app, job_types=True)
    write_logs(loaded.settings, log_level, as_json=as_json)
    asyncio.run(_serve(loaded, host, port, as_json=as_json))


async def _serve(app: Duly, host: str, port: int, *, as_json: bool) -> None:
    stop = stop_signal()
    async with app, listening(app, host, port) as url, app.alerting():
        if as_json:
            print_json({"event": "ready", "url": url})
        else:
            print(f"ready {url}", flush=True)
        await stop.wait()


def up(
    app: LoadedApp,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    log_level: LogLevelOption = None,
    as_json: AsJson = False,
) -> None:
    """Run database, service and worker in one process, to try Duly.

    Without --app, it runs the example jobs of `duly.apps.analyze`.
    """
    write_logs(app.settings, log_level, as_json=as_json, otherwise=LogLevel.WARNING)
    asyncio.run(_run_until_stopped(app, host, port, as_json=as_json))


async def _run_until_stopped(app: Duly, host: str, port: int, *, as_json: bool) -> None:
    stop = stop_signal()
    async with running(app, host, port) as service:
        _print_ready(service, as_json=as_json)
        await stop.wait()


def _print_ready(service: Running, *, as_json: bool) -> None:
    if as_json:
        addresses = {"event": "ready", "url": service.url, "login": service.login}
        print_json({**addresses, "org_id": service.org_id, "key": service.key})
        return
    hours = _KEY_LIFETIME.total_seconds() / 3600
    print(f"open     {service.login}")
    print(f"service  {service.url}   (OpenAPI: {service.url}/openapi.json)")
    print(f"key      {service.key}   (for org {service.org_id}, valid for {hours:g} hours)")
    print("Press Ctrl-C to stop; the data is kept.", flush=True)


@asynccontextmanager
async def running(app: Duly, host: str = "127.0.0.1", port: int = PORT) -> AsyncIterator[Running]:
    """Run the application with its HTTP service, a worker and a demo org until the end of the block."""
    app.include_analyze()
    if find_spec("xberg"):  # with duly[documents]
        app.include_documents()
    app.migrate()
    async with app:
        await app.create_org(_DEMO_ORG, "Demo", actor=acting(None), reason="duly up")
        created = await app.api_keys.create(
            _DEMO_ORG,
            "duly up",
            ROLE_SCOPES[Role.ADMIN],
            expires_at=datetime.now(UTC) + _KEY_LIFETIME,
            actor=acting(None),
            reason="duly up",
        )
        async with app.worker() as worker, listening(app, host, port) as url:
            await worker.listening.wait()
            yield Running(url, _DEMO_ORG, created.text)


def stop_signal() -> asyncio.Event:
    """Return an event that SIGTERM and Ctrl-C set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


@asynccontextmanager
async def listening(app: Duly, host: str, port: int, *, extras: Extras | None = None) -> AsyncIterator[str]:
    """Run the HTTP service of an application until the end of the block; its URL."""
    api = app.http_app(extras=extras)
    freeze_loaded_objects()
    with _socket(host, port) as bound:
        server = _server(api)
        running = asyncio.create_task(server.serve([bound]), name="duly-http")
        try:
            yield f"http://{_url_host(host)}:{bound.getsockname()[1]}"
        finally:
            await api.state.service.close()  # ends the streams, whose readers connect elsewhere
            server.should_exit = True
            await running


def _server(api: Any) -> uvicorn.Server:
    import uvicorn

    class HttpServer(uvicorn.Server):
        """A server that leaves signals to the command."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    timing: dict[str, Any] = {"timeout_graceful_shutdown": _SHUTDOWN_TIMEOUT, "timeout_keep_alive": 30}
    return HttpServer(uvicorn.Config(api, lifespan="off", **quiet, **timing))


def _socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family, backlog=2048)
        # asyncio sets it only for its own sockets; without it the body of a response waits for an ACK.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error}", field="port", fix="choose another with --port"
        ) from None


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
