"""A pool of isolated processes for handlers: warm, limited, and killed when they do not end in time."""

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

from duly.core.errors import ConfigurationError
from duly.core.outcome import AttemptOutcome, ErrorInfo, Retried
from duly.jobs.job import Job
from duly.observability.logs import ids_of
from duly.worker.context.run import JobRun
from duly.worker.isolation.child import (
    AttemptReport,
    ChildReady,
    ChildSetup,
    LoggedLines,
    RunUpdate,
    StartAttempt,
    find_job_type,
    main,
)
from duly.worker.job_log import JobLogSink

log = logging.getLogger("duly.worker")
# A fresh interpreter: a forked one would share our sockets and locks.
_SPAWN = multiprocessing.get_context("spawn")
_BOOT_TIMEOUT = 120.0
_EXIT_TIMEOUT = 3.0


class IsolatedProcess:
    """One isolated process and the pipe to it."""

    def __init__(self, setup: ChildSetup, job_log: JobLogSink) -> None:
        ours, theirs = _SPAWN.Pipe()
        self._job_log = job_log
        self._pipe: Connection = ours
        self.process: BaseProcess = _SPAWN.Process(target=main, args=(theirs, setup), daemon=True)
        self.process.start()
        theirs.close()
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[AttemptReport | None] = self._loop.create_future()
        self.ready = asyncio.Event()
        """Set when the process waits for a job, or is gone."""
        self.gone = False
        """Whether the process has closed its end of the pipe."""
        self._loop.add_reader(ours.fileno(), self._read)

    def _read(self) -> None:
        try:
            message = self._pipe.recv()
        except Exception:  # it is gone, or was killed in the middle of a message
            self._loop.remove_reader(self._pipe.fileno())
            self.gone, message = True, None
        if isinstance(message, LoggedLines):
            self._job_log.put(message.lines, last=message.last)
            return
        self.ready.set()
        if not isinstance(message, ChildReady) and not self._answer.done():
            self._answer.set_result(message)

    async def run(self, message: StartAttempt) -> AttemptReport | None:
        """Run an attempt; return None if the process died."""
        self._answer = self._loop.create_future()
        self.send(message)
        return await self._answer

    def send(self, message: StartAttempt | RunUpdate) -> None:
        """Send a message; a process that is gone is noticed elsewhere."""
        with suppress(OSError):
            self._pipe.send(message)

    def hang_up(self) -> None:
        """Close the pipe; the process notices that and ends."""
        self.gone = True
        if not self._pipe.closed:
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()

    def kill(self) -> str:
        """Kill the process and everything it has started; return how it ended."""
        self.hang_up()
        if self.process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                # It leads a process group, unless it had no time to become its leader.
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        return _exit_text(self.process.exitcode)

    async def reap(self) -> str:
        """Wait for a process that has closed its end; return how it ended."""
        await asyncio.to_thread(self.process.join, 5)
        return self.kill()


class ProcessPool:
    """A fixed number of processes, started before they are needed."""

    def __init__(self, size: int, setup: ChildSetup, job_log: JobLogSink) -> None:
        self._size = size
        self._setup = setup
        self._job_log = job_log
        self._idle: asyncio.Queue[IsolatedProcess | None] = asyncio.Queue()
        self._busy: dict[JobRun, IsolatedProcess] = {}

    def warm_up(self, kinds: list[Job[..., Any]]) -> None:
        """Start the processes, if any of these job types is isolated."""
        isolated = [kind for kind in kinds if kind.handler_options.isolation == "process"]
        for kind in isolated:
            _check_importable(kind)
        modules = dict.fromkeys(kind.handler.__module__ for kind in isolated)
        self._setup = replace(self._setup, modules=tuple(modules))
        for _ in range(self._size if isolated else 0):
            self._idle.put_nowait(IsolatedProcess(self._setup, self._job_log))

    async def run(self, run: JobRun) -> AttemptOutcome | None:
        """Run the handler in a process of its own; return its ending."""
        child: IsolatedProcess | None = None
        try:
            child = await self._next()
            return await self._run_in(child, run)
        except asyncio.CancelledError:
            if run.forced is None:
                raise
            return run.forced
        finally:
            # None stands for a process that is started when it is needed.
            if child is not None:
                self._idle.put_nowait(None if child.gone else child)

    async def _run_in(self, child: IsolatedProcess, run: JobRun) -> AttemptOutcome | None:
        # Its time starts when it has a process.
        run.start_clock()
        self._busy[run] = child
        message = StartAttempt(
            run.job,
            run.kind.handler.__module__,
            run.kind.handler.__qualname__,
            run.worker_id,
            run.kind.handler_options.memory_limit,
            None if run.span is None else run.span.traceparent,
        )
        try:
            report = await child.run(message)
        except asyncio.CancelledError:
            log.warning("the process of job %s %s", run.job.job_id, child.kill(), extra=ids_of(run.job))
            raise
        finally:
            del self._busy[run]
        if report is None:
            return _died(run, await child.reap())
        run.partials, run.percent = report.partials, report.percent
        run.counts, run.failures = report.counts, report.failures
        return report.ending

    async def _next(self) -> IsolatedProcess:
        """Return a ready process. One that died while idle is replaced, which costs no job an attempt."""
        child = await self._idle.get()
        try:
            if child is None or child.gone:
                child = IsolatedProcess(self._setup, self._job_log)
            async with asyncio.timeout(_BOOT_TIMEOUT):
                await child.ready.wait()
        except BaseException:
            if child is not None:
                child.kill()
            self._idle.put_nowait(None)
            raise
        return child

    def update(self, run: JobRun) -> None:
        """Send the new state of a run to its process."""
        child = self._busy.get(run)
        if child is not None:
            child.send(RunUpdate(run.cancel, run.draining, run.lost))

    async def close(self) -> None:
        """End every process. Idle ones end by themselves, because they may have spans to send."""
        idle = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
        waiting = [child for child in idle if child is not None]
        for child in waiting:
            child.hang_up()
        await asyncio.to_thread(_join, [child.process for child in waiting])
        for child in (*waiting, *self._busy.values()):
            child.kill()


def _check_importable(kind: Job[..., Any]) -> None:
    if find_job_type(kind.handler.__module__, kind.handler.__qualname__) is not kind:
        raise ConfigurationError(
            f"{kind.handler.__module__}.{kind.handler.__qualname__} is not the job type {kind.name}",
            field="isolation",
            fix="keep the decorated function under its own name, at the top of its module",
        )


def _join(processes: list[BaseProcess]) -> None:
    until = time.monotonic() + _EXIT_TIMEOUT
    for process in processes:
        process.join(max(until - time.monotonic(), 0))


def _died(run: JobRun, how: str) -> AttemptOutcome:
    error = ErrorInfo("process.died", f"the handler's process {how}", "ProcessDied", {"process": how})
    return Retried(error, dependency=run.kind.handler_options.dependency)


def _exit_text(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code}"
