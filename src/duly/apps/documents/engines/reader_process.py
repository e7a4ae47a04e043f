"""A process that reads one file, and can be ended at any time without harm to the worker.

It knows none of the worker's secrets: no environment, no open connections, a folder of its own. It heads a
group of its own, so that whatever it starts ends with it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from duly.apps.documents.engines.limits import ReaderLimits
from duly.core.errors import ConfigurationError

_BOOT = """
import sys, types
for name, path in zip(sys.argv[1::2], sys.argv[2::2]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from duly.apps.documents.engines.reader.main import main
main()
"""
"""Only the rooms that it needs: the rest of Duly, and the database with it, is never imported there."""
_HERE = Path(__file__).resolve().parent
_PACKAGES = {
    "duly": _HERE.parents[2],
    "duly.apps": _HERE.parents[1],
    "duly.apps.documents": _HERE.parent,
    "duly.apps.documents.engines": _HERE,
}
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OMP_THREAD_LIMIT": "1",
    "PATH": os.defpath,
    "RAYON_NUM_THREADS": "1",
    "TOKIO_WORKER_THREADS": "1",
}
_LINE = 96 * 1024 * 1024
"""Bytes of an answer: more than the text of a page can have."""
_ENDING = 2.0
_LOOK = 0.05
"""Seconds between two looks at its memory."""
_NO_MEMORY = (b"memory allocation of", b"bad_alloc", b"MemoryError", b"out of memory")


class Died(Exception):
    """It ended before it had answered; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Child:
    """The process, and what is said to it and by it: lines of JSON."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, limits: ReaderLimits) -> None:
        self.folder = folder
        self.peak = 0
        """The most memory that it was seen to hold, in bytes."""
        self._process = process
        self._limits = limits
        self._verdict: Died | None = None
        self._watch = asyncio.create_task(self._watch_memory())

    @classmethod
    async def start(cls, limits: ReaderLimits) -> Self:
        """Start one that waits for its file."""
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="duly-read-"))
        try:
            process = await _spawn(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(process, folder, limits)

    @property
    def pid(self) -> int:
        """Also the id of its group."""
        return self._process.pid

    async def open(self, path: Path, name: str, engine: str) -> dict[str, Any]:
        """Let it open the file, and say what it is."""
        self.ask(path=str(path), name=name, engine=engine, limits=dataclasses.asdict(self._limits))
        return await self.answer(self._limits.seconds_open)

    def ask(self, **question: Any) -> None:
        """Say something to it."""
        assert self._process.stdin is not None
        with suppress(ConnectionError, RuntimeError):  # it is gone: so its answer will say
            self._process.stdin.write(json.dumps(question).encode() + b"\n")

    async def answer(self, seconds: float) -> dict[str, Any]:
        """Wait for its next line, and give up on it when the time is over."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                line = await self._process.stdout.readline()
                said = json.loads(line) if line.endswith(b"\n") else None
        except TimeoutError:
            raise Died("document.too_slow", f"nothing more of it within {seconds:.0f} seconds") from None
        except ValueError:
            raise Died("document.broken", "its reader said something that cannot be understood") from None
        if not isinstance(said, dict):
            raise await self._cause()
        if "missing" in said:
            raise ConfigurationError(
                f"{said['missing']} is not installed", field="engine", fix="install duly[documents]"
            )
        return said

    async def close(self) -> None:
        """End it, and all that it started; nothing of it remains."""
        self._watch.cancel()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        try:
            await asyncio.shield(self._process.wait())
        finally:
            # Closes the pipes: what was not yet written to it, nobody will read.
            self._process._transport.close()  # type: ignore[attr-defined]
            shutil.rmtree(self.folder, ignore_errors=True)

    async def _cause(self) -> Died:
        """Why it ended; what still runs when it has closed its line is as good as dead."""
        ended = None
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                ended = await self._process.wait()
        if self._verdict:
            return self._verdict
        last = await asyncio.to_thread(_tail, self.folder / "stderr")
        if ended == -signal.SIGXCPU:
            return Died("document.too_slow", "it takes more time than a file may")
        if ended == -signal.SIGKILL or any(said in last for said in _NO_MEMORY):
            return Died("document.too_large", "its reader was ended for want of memory")
        return Died("document.broken", f"its reader ended with {ended}")

    async def _watch_memory(self) -> None:
        """The limit that it has by itself counts addresses; this one counts what it holds."""
        place = Path(f"/proc/{self.pid}/status")
        with suppress(OSError):
            while True:
                self.peak = max(self.peak, _peak(place.read_text()))  # noqa: ASYNC240 - it is no file
                if self.peak > self._limits.memory:
                    self._verdict = Died("document.too_large", "it needs more memory than a file may")
                    os.killpg(self.pid, signal.SIGKILL)
                await asyncio.sleep(_LOOK)


async def _spawn(folder: Path) -> asyncio.subprocess.Process:
    rooms = [part for name, path in _PACKAGES.items() for part in (name, str(path))]
    with (folder / "stderr").open("wb") as stderr:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", _BOOT, *rooms),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            cwd=folder,
            env={**_ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder)},
            start_new_session=True,
            limit=_LINE,
        )


def _tail(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        return file.read()
    return b""


def _peak(status: str) -> int:
    """Bytes that a process held at most, as the kernel says."""
    _, _, rest = status.partition("VmHWM:")
    return int(rest.split(maxsplit=1)[0]) * 1024 if rest else 0
