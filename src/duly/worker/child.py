"""The isolated process: one job at a time, with the same contexts as in the worker."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import psycopg

from duly.client.app import App
from duly.client.ground import Ground
from duly.client.job import Job
from duly.model.errors import StoreError
from duly.model.outcome import ErrorInfo, Retry
from duly.store.job_logs import Line
from duly.worker.attempt import perform
from duly.worker.complete import complete
from duly.worker.messages import Begin, Ready, Report, Said, Setup, Signal
from duly.worker.progress import ProgressKeeper
from duly.worker.run import Run
from duly.worker.threads import ThreadPool
from duly.worker.workshop import Workshop

if TYPE_CHECKING:
    from duly.observe.traces import Traces

_GOODBYE = 2.0


def main(pipe: Connection, setup: Setup) -> None:
    """The life of the process. It ends with its worker, whatever it is doing."""
    # What the handler starts shall end with it. When to stop is for the worker to say, who hears the signals.
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    if setup.logs is not None:
        setup.logs.write()
    # As a daemon, which ends with its parent, it could have no processes of its own.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    asyncio.run(_Child(pipe, setup).serve())


def find(module: str, qualname: str) -> Job[..., Any] | None:
    """The job type whose handler has this name."""
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, Job) else None


class _Child:
    def __init__(self, pipe: Connection, setup: Setup) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self._lines = _Lines(self._send, setup.job_log_level)
        self._setup = setup
        self._orders: asyncio.Queue[Begin] = asyncio.Queue()
        self._run: Run | None = None
        self._threads = ThreadPool(1)
        self._apps: set[App] = set()
        self._traces: Traces | None = None

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        for module in self._setup.modules:
            importlib.import_module(module)
        ground = await self._setup.open_ground()
        self._traces = ground.traces
        self._send(Ready())
        keeper = ProgressKeeper(ground.database)
        keeping = asyncio.create_task(keeper.run())
        while not keeping.done():
            begin = await self._orders.get()
            kind = find(begin.module, begin.qualname)
            if kind is None:
                self._send(_not_found(begin))
                continue
            self._settle_in(kind.app, ground)
            shop = Workshop(
                app=kind.app,
                database=ground.database,
                sessions=ground.database,
                blobs=ground.blobs,
                keeper=keeper,
                lines=self._lines,
                url=self._setup.url,
                inline_max=ground.payload_inline_max,
                result_max=self._setup.result_max,
                traces=ground.traces,
            )
            self._send(await self._perform(Run.of(begin.job, kind, begin.worker_id), shop, begin))

    def _send(self, message: Ready | Report | Said) -> None:
        """Handlers log on threads of their own."""
        with self._sending:
            self._pipe.send(message)

    def _settle_in(self, app: App, ground: Ground) -> None:
        """What the handler enqueues goes where its worker is, whatever its module says about the database."""
        if app in self._apps:
            return
        ours = asyncio.get_running_loop()

        async def opener() -> Ground:
            # A pool belongs to its loop; handlers that are not async enqueue on another one.
            return ground if asyncio.get_running_loop() is ours else await self._setup.open_ground()

        app.stand_on(opener)
        self._apps.add(app)

    async def _perform(self, run: Run, shop: Workshop, begin: Begin) -> Report:
        self._run = run
        _limit(begin.memory_limit)
        try:
            with _below(begin, shop.traces):
                ending = await perform(run, shop, self._threads)
                left = await complete(run, ending)
            with suppress(psycopg.Error, StoreError):
                await shop.keeper.flush(run.job.key)
        finally:
            _limit(None)
            self._run = None
        if run.log is not None:
            run.log.close()
        return Report(left, run.partials, run.percent, run.counts, tuple(run.failures))

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """On a thread of its own, so that a handler that blocks the loop does not outlive the worker."""
        while True:
            try:
                message = self._pipe.recv()
            except Exception:  # the worker is gone, or there is no memory left to listen
                if self._run is None and self._traces is not None:
                    self._traces.flush(_GOODBYE)
                os.killpg(0, signal.SIGKILL)
                return
            loop.call_soon_threadsafe(self._hear, message)

    def _hear(self, message: Begin | Signal) -> None:
        if isinstance(message, Begin):
            self._orders.put_nowait(message)
        elif self._run is not None:
            self._run.draining = message.draining
            self._run.lost = message.lost
            if message.cancel is not None:
                self._run.ask_to_stop(message.cancel)


class _Lines:
    """Lines go to the worker at once: it keeps them also if the process is about to die."""

    def __init__(self, send: Callable[[Said], None], level: int) -> None:
        self.level = level
        self._send = send

    def put(self, lines: Sequence[Line], *, last: bool = False) -> None:
        """Pass them on."""
        with suppress(OSError):  # the worker is gone, and we follow
            self._send(Said(tuple(lines), last))


def _below(begin: Begin, traces: Traces | None) -> AbstractContextManager[object]:
    """The handler's work here is part of the attempt, whose span is the worker's."""
    if traces is None or begin.traceparent is None:
        return nullcontext()
    return traces.carried_on("handler", begin.traceparent)


def _limit(size: int | None) -> None:
    """Limit the memory that the process may ask for; beyond it, Python raises MemoryError."""
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (hard if size is None else size, hard))


def _not_found(begin: Begin) -> Report:
    said = f"{begin.module}.{begin.qualname} is no job type in the isolated process"
    return Report(Retry(ErrorInfo("process.unknown", said)), 0, 0.0)
