"""The workers: processes that are started, replaced when they die, and ended with us."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE = 8.0


@dataclass
class Member:
    """One worker's place, and the process that has it now."""

    name: str
    process: asyncio.subprocess.Process | None = None
    frozen: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether the process that has it takes jobs."""

    def send(self, number: signal.Signals) -> None:
        """A signal to the process, if it lives."""
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def kill(self) -> None:
        """As `kill -9` does it: it has no say."""
        self.send(signal.SIGKILL)

    def freeze(self) -> None:
        """It stands still, and knows nothing of it."""
        self.frozen = True
        self.send(signal.SIGSTOP)

    def wake(self) -> None:
        """It goes on as if nothing had been."""
        self.send(signal.SIGCONT)
        self.frozen = False


class Crew:
    """So many workers. One that dies has a successor some seconds later."""

    def __init__(self, size: int, environment: Mapping[str, str], *, rest: float = 3.0) -> None:
        self.members = [Member(f"worker-{number}") for number in range(1, size + 1)]
        self._environment = {**os.environ, **environment}
        self._rest = rest

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """All of them work, until the end of the block."""
        lifeline, ours = os.pipe()  # closed by our end, however it comes
        keeping = [asyncio.create_task(self._keep(member, lifeline)) for member in self.members]
        try:
            yield
        finally:
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)
            await asyncio.gather(*map(_end, self.members))
            os.close(lifeline)
            os.close(ours)

    async def until_ready(self) -> None:
        """One of them takes jobs; the others come."""
        waiting = [asyncio.create_task(member.ready.wait()) for member in self.members]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()

    def with_pid(self, pid: int) -> Member | None:
        """Whose process that is."""
        return next((m for m in self.members if m.process is not None and m.process.pid == pid), None)

    async def _keep(self, member: Member, lifeline: int) -> None:
        while True:
            member.process = process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-m", f"{__package__}.worker", member.name, str(os.getpid())],
                stdin=lifeline,
                stdout=asyncio.subprocess.PIPE,
                cwd=_above(),
                env=self._environment,
                process_group=0,  # the terminal's Ctrl-C is for us alone
            )
            assert process.stdout is not None
            if await process.stdout.readline():
                member.ready.set()
            await process.wait()
            member.ready.clear()
            member.frozen = False
            await asyncio.sleep(self._rest)


async def _end(member: Member) -> None:
    process = member.process
    if process is None or process.returncode is not None:
        return
    member.wake()
    member.send(signal.SIGTERM)
    try:
        async with asyncio.timeout(_PATIENCE):
            await process.wait()
    except TimeoutError:
        member.kill()
        await process.wait()


def _above() -> Path:
    """Where `python -m` finds this package under its name."""
    return Path(__file__).parents[len((__package__ or "").split("."))]
