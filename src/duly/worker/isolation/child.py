"""The isolated process: one job at a time, with the same contexts as in the worker; and its messages."""

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
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg

from duly.core.errors import StoreError
from duly.core.outcome import AttemptOutcome, Canceled, ErrorInfo, Retried
from duly.jobs.application import App
from duly.jobs.job import Job
from duly.jobs.resources import Resources
from duly.observability.logs import Logs
from duly.worker.claim import ClaimedJob
from duly.worker.context.progress import ProgressWriter
from duly.worker.context.run import JobRun
from duly.worker.context.services import HandlerServices
from duly.worker.context.transaction import complete_bound
from duly.worker.handler import run_handler
from duly.worker.isolation.threads import ThreadPool
from duly.worker.job_log import NewLogLine
from duly.worker.options import OpenResources

if TYPE_CHECKING:
    from duly.observability.traces import Traces

_FLUSH_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class ChildSetup:
    """What an isolated process needs before its first job."""

    open_resources: OpenResources
    url: str
    result_max: int
    job_log_level: int
    logs: Logs | None = None
    """The logging configuration; None if the application's modules configure it."""
    modules: tuple[str, ...] = ()
    """The modules of the handlers, imported before the first job comes."""


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """To the process: run this job with the handler of this name."""

    job: ClaimedJob
    module: str
    qualname: str
    worker_id: UUID
    memory_limit: int | None
    traceparent: str | None = None
    """The span of the attempt, parent of the handler's span."""


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """To the process: the new state of the running attempt."""

    cancel: Canceled | None
    draining: bool
    lost: bool


@dataclass(frozen=True, slots=True)
class ChildReady:
    """To the worker: the process waits for a job."""


@dataclass(frozen=True, slots=True)
class LoggedLines:
    """To the worker: lines of `ctx.log` to be stored."""

    lines: tuple[NewLogLine, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """To the worker: how the attempt ended; the ending is None if its own transaction settled it."""

    ending: AttemptOutcome | None
    partials: int
    percent: float
    counts: dict[str, float] = field(default_factory=dict)
    failures: tuple[dict[str, Any], ...] = ()


def main(pipe: Connection, setup: ChildSetup) -> None:
    """Run the process. It ends with its worker, whatever it is doing."""
    # A session of its own: what the handler starts ends with it. Only the worker reacts to stop signals.
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    if setup.logs is not None:
        setup.logs.configure()
    # As a daemon, which ends with its parent, it could have no processes of its own.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    asyncio.run(_Child(pipe, setup).serve())


def find_job_type(module: str, qualname: str) -> Job[..., Any] | None:
    """Return the job type whose handler has this name."""
    value: Any = importlib.import_module(module)
    for part in qualname.split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, Job) else None


class _Child:
    def __init__(self, pipe: Connection, setup: ChildSetup) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self._job_log = _PipeLogSink(self._send, setup.job_log_level)
        self._setup = setup
        self._inbox: asyncio.Queue[StartAttempt] = asyncio.Queue()
        self._run: JobRun | None = None
        self._threads = ThreadPool(1)
        self._apps: set[App] = set()
        self._traces: Traces | None = None

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        for module in self._setup.modules:
            importlib.import_module(module)
        resources = await self._setup.open_resources()
        self._traces = resources.traces
        self._send(ChildReady())
        progress = ProgressWriter(resources.database)
        writing = asyncio.create_task(progress.run())
        while not writing.done():
            message = await self._inbox.get()
            kind = find_job_type(message.module, message.qualname)
            if kind is None:
                self._send(_not_found(message))
                continue
            self._share_resources(kind.app, resources)
            services = HandlerServices(
                app=kind.app,
                database=resources.database,
                sessions=resources.database,
                blobs=resources.blobs,
                progress=progress,
                job_log=self._job_log,
                url=self._setup.url,
                inline_max=resources.payload_inline_max,
                result_max=self._setup.result_max,
                traces=resources.traces,
            )
            run = JobRun(message.job, kind, message.worker_id)
            self._send(await self._perform(run, services, message))

    def _send(self, message: ChildReady | AttemptReport | LoggedLines) -> None:
        """Send a message; locked, because handlers log on threads of their own."""
        with self._sending:
            self._pipe.send(message)

    def _share_resources(self, app: App, resources: Resources) -> None:
        """Let the application enqueue into the worker's database, whatever its module configures."""
        if app in self._apps:
            return
        own_loop = asyncio.get_running_loop()

        async def opener() -> Resources:
            # A pool belongs to its loop; sync handlers enqueue on another one.
            if asyncio.get_running_loop() is own_loop:
                return resources
            return await self._setup.open_resources()

        app.open_with(opener)
        self._apps.add(app)

    async def _perform(self, run: JobRun, services: HandlerServices, message: StartAttempt) -> AttemptReport:
        self._run = run
        _limit_memory(message.memory_limit)
        try:
            with _handler_span(message, services.traces):
                ending = await run_handler(run, services, self._threads)
                remaining = await complete_bound(run, ending)
            with suppress(psycopg.Error, StoreError):
                await services.progress.flush(run.job.key)
        finally:
            _limit_memory(None)
            self._run = None
        if run.log is not None:
            run.log.close()
        return AttemptReport(remaining, run.partials, run.percent, dict(run.counts), run.failures)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Receive messages on a thread: a handler that blocks the loop must not outlive the worker."""
        while True:
            try:
                message = self._pipe.recv()
            except Exception:  # the worker is gone, or there is no memory left to receive
                if self._run is None and self._traces is not None:
                    self._traces.flush(_FLUSH_TIMEOUT)
                os.killpg(0, signal.SIGKILL)
                return
            loop.call_soon_threadsafe(self._receive, message)

    def _receive(self, message: StartAttempt | RunUpdate) -> None:
        if isinstance(message, StartAttempt):
            self._inbox.put_nowait(message)
        elif self._run is not None:
            self._run.draining = message.draining
            self._run.lost = message.lost
            if message.cancel is not None:
                self._run.request_cancel(message.cancel)


class _PipeLogSink:
    """Sends lines to the worker at once, which stores them even if the process is about to die."""

    def __init__(self, send: Callable[[LoggedLines], None], level: int) -> None:
        self.level = level
        self._send = send

    def put(self, lines: Sequence[NewLogLine], *, last: bool = False) -> None:
        """Send the lines to the worker."""
        with suppress(OSError):  # the worker is gone, and this process follows
            self._send(LoggedLines(tuple(lines), last))


def _handler_span(message: StartAttempt, traces: Traces | None) -> AbstractContextManager[object]:
    """Return the span of the handler, a child of the attempt's span in the worker."""
    if traces is None or message.traceparent is None:
        return nullcontext()
    return traces.continue_trace("handler", message.traceparent)


def _limit_memory(size: int | None) -> None:
    """Limit the memory of the process; beyond it, Python raises MemoryError."""
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (hard if size is None else size, hard))


def _not_found(message: StartAttempt) -> AttemptReport:
    text = f"the isolated process found no job type {message.module}.{message.qualname}"
    return AttemptReport(Retried(ErrorInfo("process.unknown", text)), 0, 0.0)
