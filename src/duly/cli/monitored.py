"""One address for all processes of a worker: what they counted together, and whether they are well.

Each of them answers at a socket in a folder that all share, and counts in that folder: any of them can tell
the numbers of all, also of the ones that have ended. What the database says, it asks for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from duly.model.errors import ConfigurationError
from duly.observe import bygone, exposition
from duly.observe.server import Answer, ask, health, listen, listen_at
from duly.wiring import Duly
from duly.worker.worker import Worker

_LONGEST_SOCKET = 104
"""Bytes of a path, on every system that has such sockets."""


@asynccontextmanager
async def telling(app: Duly, worker: Worker) -> AsyncIterator[None]:
    """In a process that works: answer at its socket in the folder that its parent has made."""

    async def metrics() -> Answer:
        await figures.refresh()
        return Answer(200, exposition.CONTENT_TYPE, await asyncio.to_thread(exposition.text, figures))

    async def ready() -> Answer:
        return health(worker.why_not_ready)

    place = _socket(Path(os.environ[exposition.FOLDER]), os.getpid())
    async with app.figures() as figures:
        server = await listen_at({"/metrics": metrics, "/readyz": ready}, place)
        try:
            yield
        finally:
            server.close()


class Monitor:
    """In the parent: asks the processes on behalf of whoever asks at the address."""

    def __init__(self, host: str, port: int, processes: int) -> None:
        self._host = host
        self._port = port
        self._processes = processes
        self._folder = _folder()
        self._reading = asyncio.Lock()
        self._pids: Callable[[], Iterable[int]] = tuple

    @property
    def environment(self) -> Mapping[str, str]:
        """What the processes find around them: they count in files."""
        return {**os.environ, exposition.FOLDER: self._folder.name}

    @asynccontextmanager
    async def listening(self, pids: Callable[[], Iterable[int]]) -> AsyncIterator[str]:
        """Answer until the end of the block, for the processes that live; the address."""
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

    async def _alive(self) -> Answer:
        return health()

    async def _ready(self) -> Answer:
        """If every process is."""
        answers = await asyncio.gather(*(self._ask(pid, "/readyz") for pid in self._pids()))
        well = sum(one is not None and one.status == 200 for one in answers)
        return health([f"{well} of {self._processes} processes are ready"] if well < self._processes else [])

    async def _metrics(self) -> Answer:
        """One at a time: while somebody reads, nobody adds up what ended processes left."""
        async with self._reading:
            await asyncio.to_thread(bygone.fold, Path(self._folder.name))
            for pid in self._pids():
                answer = await self._ask(pid, "/metrics")
                if answer is not None:
                    return answer
        return health(["no process answers"])

    async def _ask(self, pid: int, target: str) -> Answer | None:
        return await ask(_socket(Path(self._folder.name), pid), target)


def _folder() -> TemporaryDirectory[str]:
    """Where the temporary files are, if the path of a socket there is not longer than one may be."""
    fits = len(os.fsencode(_socket(Path(gettempdir(), "duly-metrics-12345678"), 2**31))) < _LONGEST_SOCKET
    place = None if fits else "/tmp"  # noqa: S108, others cannot look into what is made there
    return TemporaryDirectory(prefix="duly-metrics-", dir=place, ignore_cleanup_errors=True)


def _socket(folder: Path, pid: int) -> Path:
    return folder / f"{pid}.sock"
