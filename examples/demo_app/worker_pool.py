"""Worker processes that are started, replaced when they die, and stopped with the demo."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

STOP_TIMEOUT = 8.0


@dataclass
class WorkerProcess:
    """A worker and its current process."""

    name: str
    process: asyncio.subprocess.Process | None = None
    frozen: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether the process that has it takes jobs."""

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it is alive."""
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send(signal.SIGKILL)

    def freeze(self) -> None:
        """Send SIGSTOP."""
        self.frozen = True
        self.send(signal.SIGSTOP)

    def wake(self) -> None:
        """Send SIGCONT."""
        self.send(signal.SIGCONT)
        self.frozen = False


class WorkerPool:
    """A number of workers. A worker that dies is replaced after some seconds."""

    def __init__(self, size: int, environment: Mapping[str, str], *, restart_delay: float = 3.0) -> None:
        self.processes = [WorkerProcess(f"worker-{number}") for number in range(1, size + 1)]
        self._environment = {**os.environ, **environment}
        self._restart_delay = restart_delay

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all workers until the end of the block."""
        lifeline, write_end = os.pipe()  # closed when this process ends, however it ends
        supervisors = [asyncio.create_task(self._supervise(worker, lifeline)) for worker in self.processes]
        try:
            yield
        finally:
            for task in supervisors:
                task.cancel()
            await asyncio.gather(*supervisors, return_exceptions=True)
            await asyncio.gather(*map(_stop, self.processes))
            os.close(lifeline)
            os.close(write_end)

    async def until_ready(self) -> None:
        """Wait until the first worker is ready."""
        waiting = [asyncio.create_task(worker.ready.wait()) for worker in self.processes]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()

    def with_pid(self, pid: int) -> WorkerProcess | None:
        """Return the worker with this process id."""
        return next((m for m in self.processes if m.process is not None and m.process.pid == pid), None)

    async def _supervise(self, worker: WorkerProcess, lifeline: int) -> None:
        while True:
            worker.process = process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-m", f"{__package__}.worker", worker.name, str(os.getpid())],
                stdin=lifeline,
                stdout=asyncio.subprocess.PIPE,
                cwd=_import_root(),
                env=self._environment,
                process_group=0,  # Ctrl-C of the terminal goes to the parent only
            )
            assert process.stdout is not None
            if await process.stdout.readline():
                worker.ready.set()
            await process.wait()
            worker.ready.clear()
            worker.frozen = False
            await asyncio.sleep(self._restart_delay)


async def _stop(worker: WorkerProcess) -> None:
    process = worker.process
    if process is None or process.returncode is not None:
        return
    worker.wake()
    worker.send(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            await process.wait()
    except TimeoutError:
        worker.kill()
        await process.wait()


def _import_root() -> Path:
    """Return the folder in which `python -m` finds this package."""
    return Path(__file__).parents[len((__package__ or "").split("."))]
