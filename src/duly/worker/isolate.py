"""Handlers in processes of their own: warm, limited, and killed when they do not end in time."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from duly.client.job import Job
from duly.model.errors import ConfigurationError
from duly.model.outcome import Ending, ErrorInfo, Retry
from duly.observe.fields import ids_of
from duly.worker.child import find, main
from duly.worker.job_log import Lines
from duly.worker.messages import Begin, Ready, Report, Said, Setup, Signal
from duly.worker.run import Run

log = logging.getLogger("duly.worker")
# A fresh interpreter: a forked one would share our sockets and locks.
_SPAWN = multiprocessing.get_context("spawn")
_BOOT = 120.0
_GOODBYE = 3.0


class Child:
    """One isolated process and the way to talk to it."""

    def __init__(self, setup: Setup, lines: Lines) -> None:
        ours, theirs = _SPAWN.Pipe()
        self._lines = lines
        self._pipe: Connection = ours
        self.process: BaseProcess = _SPAWN.Process(target=main, args=(theirs, setup), daemon=True)
        self.process.start()
        theirs.close()
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Report | None] = self._loop.create_future()
        self.ready = asyncio.Event()
        """Set when it waits for a job, or is gone."""
        self.gone = False
        """Whether it has closed its end."""
        self._loop.add_reader(ours.fileno(), self._read)

    def _read(self) -> None:
        try:
            message = self._pipe.recv()
        except Exception:  # it is gone, or was killed in the middle of a word
            self._loop.remove_reader(self._pipe.fileno())
            self.gone, message = True, None
        if isinstance(message, Said):
            self._lines.put(message.lines, last=message.last)
            return
        self.ready.set()
        if not isinstance(message, Ready) and not self._answer.done():
            self._answer.set_result(message)

    async def perform(self, begin: Begin) -> Report | None:
        """What became of it; None if the process died over it."""
        self._answer = self._loop.create_future()
        self.tell(begin)
        return await self._answer

    def tell(self, message: Begin | Signal) -> None:
        """Say something; a process that is gone is noticed elsewhere."""
        with suppress(OSError):
            self._pipe.send(message)

    def hang_up(self) -> None:
        """Say no more. It hears that, and ends."""
        self.gone = True
        if not self._pipe.closed:
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()

    def kill(self) -> str:
        """End it now, and whatever it has started; how it ended."""
        self.hang_up()
        if self.process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                # It leads a group of its own, unless it had no time to become its leader.
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        return _manner(self.process.exitcode)

    async def reap(self) -> str:
        """Wait for a process that has closed its end; how it ended."""
        await asyncio.to_thread(self.process.join, 5)
        return self.kill()


class ProcessPool:
    """As many processes as may work at a time, started before they are needed."""

    def __init__(self, size: int, setup: Setup, lines: Lines) -> None:
        self._size = size
        self._setup = setup
        self._lines = lines
        self._idle: asyncio.Queue[Child | None] = asyncio.Queue()
        self._busy: dict[Run, Child] = {}

    def warm_up(self, kinds: list[Job[..., Any]]) -> None:
        """Start the processes, if any of these job types wants one."""
        isolated = [kind for kind in kinds if kind.handling.isolation == "process"]
        for kind in isolated:
            _check_found(kind)
        modules = dict.fromkeys(kind.handler.__module__ for kind in isolated)
        self._setup = replace(self._setup, modules=tuple(modules))
        for _ in range(self._size if isolated else 0):
            self._idle.put_nowait(Child(self._setup, self._lines))

    async def perform(self, run: Run) -> Ending | None:
        """Run it in a process of its own."""
        child: Child | None = None
        try:
            child = await self._next()
            return await self._perform(run, child)
        except asyncio.CancelledError:
            if run.forced is None:
                raise
            return run.forced
        finally:
            # What is gone leaves its place to one that is started when it is needed.
            if child is not None:
                self._idle.put_nowait(None if child.gone else child)

    async def _perform(self, run: Run, child: Child) -> Ending | None:
        # Its time starts when it has a process.
        run.start_clock()
        self._busy[run] = child
        begin = Begin(
            run.job,
            run.kind.handler.__module__,
            run.kind.handler.__qualname__,
            run.worker_id,
            run.kind.handling.memory_limit,
            None if run.span is None else run.span.traceparent,
        )
        try:
            report = await child.perform(begin)
        except asyncio.CancelledError:
            log.warning("job %s: its process %s", run.job.job_id, child.kill(), extra=ids_of(run.job))
            raise
        finally:
            del self._busy[run]
        if report is None:
            return _died(run, await child.reap())
        run.partials, run.percent = report.partials, report.percent
        run.counts, run.failures = report.counts, list(report.failures)
        return report.ending

    async def _next(self) -> Child:
        """A process that is ready. One that died while it waited is replaced, and costs nobody an attempt."""
        child = await self._idle.get()
        try:
            if child is None or child.gone:
                child = Child(self._setup, self._lines)
            async with asyncio.timeout(_BOOT):
                await child.ready.wait()
        except BaseException:
            if child is not None:
                child.kill()
            self._idle.put_nowait(None)
            raise
        return child

    def tell(self, run: Run) -> None:
        """Let the handler know what happened to its run."""
        child = self._busy.get(run)
        if child is not None:
            child.tell(Signal(run.cancel, run.draining, run.lost))

    async def close(self) -> None:
        """End every process. Those that wait end by themselves, and may have spans to send."""
        idle = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
        waiting = [child for child in idle if child is not None]
        for child in waiting:
            child.hang_up()
        await asyncio.to_thread(_join, [child.process for child in waiting])
        for child in (*waiting, *self._busy.values()):
            child.kill()


def _check_found(kind: Job[..., Any]) -> None:
    if find(kind.handler.__module__, kind.handler.__qualname__) is not kind:
        raise ConfigurationError(
            f"{kind.handler.__module__}.{kind.handler.__qualname__} is not the job type {kind.name}",
            field="isolation",
            fix="keep the decorated function under its own name, at the top of its module",
        )


def _join(processes: list[BaseProcess]) -> None:
    until = time.monotonic() + _GOODBYE
    for process in processes:
        process.join(max(until - time.monotonic(), 0))


def _died(run: Run, manner: str) -> Ending:
    error = ErrorInfo("process.died", f"the handler's process {manner}", "ProcessDied", {"process": manner})
    return Retry(error, dependency=run.kind.handling.dependency)


def _manner(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code}"
