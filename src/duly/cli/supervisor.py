"""The parent of the worker processes: starts them, replaces those that die, and has them drain."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from duly.cli.exits import ExitCode

log = logging.getLogger("duly.cli")
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 30.0
_LIVED = 60.0
_HOPELESS = (ExitCode.USAGE, ExitCode.NOT_FOUND, ExitCode.REFUSED)
"""Ends that would only come again."""
RETIRED = 243
"""How a process ends that an operator has asked to drain: no other takes its place."""


class Supervisor:
    """Keeps so many processes of one command alive until it is told to stop."""

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
        """Until all have ended; how it ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told)
        # Nothing is ever written: that it closes is how the processes hear of our end, however it comes.
        self._lifeline, ours = os.pipe()
        try:
            await asyncio.gather(*(self._keep() for _ in range(self._processes)))
        finally:
            os.close(self._lifeline)
            os.close(ours)
        return self._code

    @property
    def pids(self) -> list[int]:
        """The processes that live."""
        return [child.pid for child in self._children]

    def _told(self) -> None:
        """The first signal drains, the second kills."""
        if not self._stopping.is_set():
            log.info("draining; a second signal kills")
            self._stop()
        else:
            log.warning("killing %d processes", len(self._children))
            for child in self._children:
                with suppress(ProcessLookupError):
                    # With everything it has started: it leads a group of its own.
                    os.killpg(child.pid, signal.SIGKILL)

    def _stop(self) -> None:
        self._stopping.set()
        for child in self._children:
            with suppress(ProcessLookupError):
                child.terminate()

    async def _keep(self) -> None:
        """One process after the other."""
        pause = 0.0
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._one()
            if self._stopping.is_set():
                # One that is told before it listens just ends: it held nothing yet.
                ended_well = code in (ExitCode.OK, -signal.SIGTERM)
                self._code = max(self._code, ExitCode.OK if ended_well else ExitCode.INTERNAL)
                return
            if code == RETIRED:
                log.info("a worker process was asked to drain, and has ended")
                return
            if code in _HOPELESS:
                self._code = ExitCode(code)
                self._stop()
                return
            pause = 0.0 if time.monotonic() - started > _LIVED else pause
            log.error("a worker process ended with code %d; another starts in %g s", code, pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            pause = min(max(pause * 2, _FIRST_PAUSE), _LAST_PAUSE)

    async def _one(self) -> int:
        # In a session of its own: Ctrl-C reaches us alone, and we tell it once.
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
