"""The parent of the worker processes: it starts them, replaces those that die, and drains them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from duly.cli.exit_codes import ExitCode

log = logging.getLogger("duly.cli")
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_STABLE_AFTER = 60.0
_PERMANENT_FAILURES = (ExitCode.USAGE, ExitCode.NOT_FOUND, ExitCode.REFUSED)
"""Exit codes that a restart would only repeat."""
DRAINED = 243
"""The exit code of a process that an operator has drained; it is not replaced."""


class Supervisor:
    """Keeps a number of processes of one command alive until a signal stops it."""

    def __init__(
        self, command: Sequence[str], processes: int, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = command
        self._environment = environment
        self._processes = processes
        self._children: set[asyncio.subprocess.Process] = set()
        self._stopping = asyncio.Event()
        self._code = ExitCode.OK

    async def run(self) -> int:
        """Run until all processes have ended, and return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        # Nothing is ever written: the processes notice that it closes, however the parent ends.
        self._lifeline, ours = os.pipe()
        try:
            await asyncio.gather(*(self._keep_alive() for _ in range(self._processes)))
        finally:
            os.close(self._lifeline)
            os.close(ours)
        return self._code

    @property
    def pids(self) -> list[int]:
        """The ids of the living processes."""
        return [child.pid for child in self._children]

    def _on_signal(self) -> None:
        """Drain at the first signal, kill at the second."""
        if not self._stopping.is_set():
            log.info("draining; a second signal kills")
            self._stop()
        else:
            log.warning("killing %d processes", len(self._children))
            for child in self._children:
                with suppress(ProcessLookupError):
                    # With everything it has started: it leads a process group of its own.
                    os.killpg(child.pid, signal.SIGKILL)

    def _stop(self) -> None:
        self._stopping.set()
        for child in self._children:
            with suppress(ProcessLookupError):
                child.terminate()

    async def _keep_alive(self) -> None:
        """Run one process after the other."""
        delay = 0.0
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._run_process()
            if self._stopping.is_set():
                # A process that gets the signal before it listens just ends: it held no job yet.
                ended_well = code in (ExitCode.OK, -signal.SIGTERM)
                self._code = max(self._code, ExitCode.OK if ended_well else ExitCode.INTERNAL)
                return
            if code == DRAINED:
                log.info("a worker process was drained by an operator")
                return
            if code in _PERMANENT_FAILURES:
                self._code = ExitCode(code)
                self._stop()
                return
            delay = 0.0 if time.monotonic() - started > _STABLE_AFTER else delay
            log.error("a worker process ended with code %d; restarting in %g s", code, delay)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
            delay = min(max(delay * 2, _FIRST_DELAY), _LONGEST_DELAY)

    async def _run_process(self) -> int:
        # In a session of its own: Ctrl-C reaches the parent alone, which signals each process once.
        child = await asyncio.create_subprocess_exec(
            *self._command, stdin=self._lifeline, start_new_session=True, env=self._environment
        )
        self._children.add(child)
        if self._stopping.is_set():
            with suppress(ProcessLookupError):
                child.terminate()
        try:
            return await child.wait()
        finally:
            self._children.discard(child)
