"""Metrics and health of all processes of a worker at one address.

Each process listens on a socket in a folder that all share, and counts in that folder: any of them can answer
for all, also for ended ones. Figures of the database are queried on request.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from duly.app import Duly
from duly.core.errors import ConfigurationError
from duly.observability import exposition
from duly.observability.metrics_server import PlainResponse, get, health, listen, listen_at
from duly.worker.worker import Worker

_MAX_SOCKET_PATH = 104
"""Bytes; the smallest maximum of all systems."""


@asynccontextmanager
async def serve_metrics(app: Duly, worker: Worker) -> AsyncIterator[None]:
    """Serve the metrics of this worker process on its socket in the folder of the parent."""

    async def metrics() -> PlainResponse:
        await figures.refresh()
        return PlainResponse(
            200, exposition.CONTENT_TYPE, await asyncio.to_thread(exposition.render, figures)
        )

    async def ready() -> PlainResponse:
        return health(worker.why_not_ready)

    path = _socket(Path(os.environ[exposition.MULTIPROCESS_DIR]), os.getpid())
    async with app.database_metrics() as figures:
        server = await listen_at({"/metrics": metrics, "/readyz": ready}, path)
        try:
            yield
        finally:
            server.close()


class Monitor:
    """The server in the parent process: it forwards requests to the worker processes."""

    def __init__(self, host: str, port: int, processes: int) -> None:
        self._host = host
        self._port = port
        self._processes = processes
        self._folder = _folder()
        self._reading = asyncio.Lock()
        self._pids: Callable[[], Iterable[int]] = tuple

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the processes: it makes them count in files."""
        return {**os.environ, exposition.MULTIPROCESS_DIR: self._folder.name}

    @asynccontextmanager
    async def listening(self, pids: Callable[[], Iterable[int]]) -> AsyncIterator[str]:
        """Listen until the end of the block, for the living processes; the URL."""
        self._pids = pids
        routes = {"/metrics": self._metrics, "/readyz": self._ready, "/livez": self._alive}
        with self._folder:
            try:
                server = await listen(routes, self._host, self._port)
            except OSError as error:
                raise ConfigurationError(
                    f"cannot listen on {self._host}:{self._port}: {error}",
                    field="metrics_port",
                    fix="choose another",
                ) from None
            try:
                host = f"[{self._host}]" if ":" in self._host else self._host
                yield f"http://{host}:{server.sockets[0].getsockname()[1]}/metrics"
            finally:
                server.close()

    async def _alive(self) -> PlainResponse:
        return health()

    async def _ready(self) -> PlainResponse:
        """Ready if every process is."""
        answers = await asyncio.gather(*(self._ask(pid, "/readyz") for pid in self._pids()))
        ready = sum(one is not None and one.status == 200 for one in answers)
        missing = ready < self._processes
        return health([f"{ready} of {self._processes} processes are ready"] if missing else [])

    async def _metrics(self) -> PlainResponse:
        """Serve one request at a time: the files of ended processes must not be folded during another."""
        async with self._reading:
            await asyncio.to_thread(exposition.merge_ended, Path(self._folder.name))
            for pid in self._pids():
                answer = await self._ask(pid, "/metrics")
                if answer is not None:
                    return answer
        return health(["no process answers"])

    async def _ask(self, pid: int, target: str) -> PlainResponse | None:
        return await get(_socket(Path(self._folder.name), pid), target)


def _folder() -> TemporaryDirectory[str]:
    """Return a temporary folder in which the path of a socket is short enough."""
    fits = len(os.fsencode(_socket(Path(gettempdir(), "duly-metrics-12345678"), 2**31))) < _MAX_SOCKET_PATH
    parent = None if fits else "/tmp"  # noqa: S108, the new folder is private
    return TemporaryDirectory(prefix="duly-metrics-", dir=parent, ignore_cleanup_errors=True)


def _socket(folder: Path, pid: int) -> Path:
    return folder / f"{pid}.sock"
