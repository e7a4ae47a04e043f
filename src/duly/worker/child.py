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
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import psycopg

from duly.client.app import App
from duly.client.ground import Ground
from duly.client.job import Job
from duly.model.errors import StoreError
from duly.model.outcome import ErrorInfo, Retry
from duly.worker.attempt import perform
from duly.worker.complete import complete
from duly.worker.messages import Begin, Ready, Report, Setup, Signal
from duly.worker.progress import ProgressKeeper
from duly.worker.run import Run
from duly.worker.threads import ThreadPool
from duly.worker.workshop import Workshop


def main(pipe: Connection, setup: Setup) -> None:
    """The life of the process. It ends with its worker, whatever it is doing."""
    # What the handler starts shall end with it. When to stop is for the worker to say, who hears the signals.
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
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
        self._setup = setup
        self._orders: asyncio.Queue[Begin] = asyncio.Queue()
        self._run: Run | None = None
        self._threads = ThreadPool(1)
        self._apps: set[App] = set()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        for module in self._setup.modules:
            importlib.import_module(module)
        ground = await self._setup.open_ground()
        self._pipe.send(Ready())
        keeper = ProgressKeeper(ground.database)
        keeping = asyncio.create_task(keeper.run())
        while not keeping.done():
            begin = await self._orders.get()
            kind = find(begin.module, begin.qualname)
            if kind is None:
                self._pipe.send(_not_found(begin))
                continue
            self._settle_in(kind.app, ground)
            shop = Workshop(
                app=kind.app,
                database=ground.database,
                sessions=ground.database,
                blobs=ground.blobs,
                keeper=keeper,
                url=self._setup.url,
                inline_max=ground.payload_inline_max,
                result_max=self._setup.result_max,
            )
            self._pipe.send(await self._perform(Run.of(begin.job, kind, begin.worker_id), shop, begin))

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
            ending = await perform(run, shop, self._threads)
            left = await complete(run, ending)
            with suppress(psycopg.Error, StoreError):
                await shop.keeper.flush(run.job.key)
        finally:
            _limit(None)
            self._run = None
        return Report(left, run.partials, run.percent, run.counts, tuple(run.failures))

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """On a thread of its own, so that a handler that blocks the loop does not outlive the worker."""
        while True:
            try:
                message = self._pipe.recv()
            except Exception:  # the worker is gone, or there is no memory left to listen
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


def _limit(size: int | None) -> None:
    """Limit the memory that the process may ask for; beyond it, Python raises MemoryError."""
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (hard if size is None else size, hard))


def _not_found(begin: Begin) -> Report:
    said = f"{begin.module}.{begin.qualname} is no job type in the isolated process"
    return Report(Retry(ErrorInfo("process.unknown", said)), 0, 0.0)
