"""The child process that reads one file, and can be killed at any time without harm to the worker.

It gets none of the worker's secrets: no environment, no open connections, a temporary directory of its own.
It leads a process group of its own, so that its children are killed with it.
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
"""Stub packages above `reader`: the rest of Duly, and the database with it, is never imported there."""
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
_MAX_RESPONSE = 96 * 1024 * 1024
"""Bytes of a response: more than the text of a page can have."""
_EXIT_TIMEOUT = 2.0
_MEMORY_CHECK_INTERVAL = 0.05
_OUT_OF_MEMORY = (b"memory allocation of", b"bad_alloc", b"MemoryError", b"out of memory")


class ReaderDied(Exception):
    """The process ended, or was given up, before it responded; `code` is the error code of the file."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ReaderProcess:
    """The process, and the lines of JSON to and from it."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, limits: ReaderLimits) -> None:
        self.folder = folder
        self.peak_memory = 0
        """Bytes."""
        self._process = process
        self._limits = limits
        self._killed_for: ReaderDied | None = None
        self._memory_watch = asyncio.create_task(self._watch_memory())

    @classmethod
    async def start(cls, limits: ReaderLimits) -> Self:
        """Start a process; it waits for `open`."""
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="duly-read-"))
        try:
            process = await _spawn(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(process, folder, limits)

    @property
    def pid(self) -> int:
        """The id of the process and of its group."""
        return self._process.pid

    async def open(self, path: Path, name: str, engine: str) -> dict[str, Any]:
        """Open the file, and return its media type and number of pages."""
        self.send(path=str(path), name=name, engine=engine, limits=dataclasses.asdict(self._limits))
        return await self.receive(self._limits.seconds_open)

    def send(self, **request: Any) -> None:
        """Send a request."""
        assert self._process.stdin is not None
        with suppress(ConnectionError, RuntimeError):  # it has ended: `receive` reports why
            self._process.stdin.write(json.dumps(request).encode() + b"\n")

    async def receive(self, timeout: float) -> dict[str, Any]:
        """Wait for the next response, or raise `ReaderDied` after the time-out."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(timeout):
                line = await self._process.stdout.readline()
                response = json.loads(line) if line.endswith(b"\n") else None
        except TimeoutError:
            raise ReaderDied("document.too_slow", f"the reader sent nothing for {timeout:.0f} s") from None
        except ValueError:
            raise ReaderDied("document.broken", "the reader sent an invalid response") from None
        if not isinstance(response, dict):
            raise await self._exit_cause()
        if "missing" in response:
            raise ConfigurationError(
                f"{response['missing']} is not installed", field="engine", fix="install duly[documents]"
            )
        return response

    async def close(self) -> None:
        """Kill the process group, and remove its directory."""
        self._memory_watch.cancel()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        try:
            await asyncio.shield(self._process.wait())
        finally:
            # Closes the pipes: buffered requests have no reader any more.
            self._process._transport.close()  # type: ignore[attr-defined]
            shutil.rmtree(self.folder, ignore_errors=True)

    async def _exit_cause(self) -> ReaderDied:
        """Return why the process ended; one that closed its stdout but still runs counts as dead."""
        code = None
        with suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_TIMEOUT):
                code = await self._process.wait()
        if self._killed_for:
            return self._killed_for
        last_output = await asyncio.to_thread(_tail, self.folder / "stderr")
        if code == -signal.SIGXCPU:
            return ReaderDied("document.too_slow", "reading the file takes too much CPU time")
        if code == -signal.SIGKILL or any(words in last_output for words in _OUT_OF_MEMORY):
            return ReaderDied("document.too_large", "the reader ran out of memory")
        return ReaderDied("document.broken", f"the reader exited with {code}")

    async def _watch_memory(self) -> None:
        """Kill the process when its resident memory exceeds the limit: RLIMIT_AS counts only addresses."""
        status = Path(f"/proc/{self.pid}/status")
        with suppress(OSError):
            while True:
                self.peak_memory = max(self.peak_memory, _peak_memory(status.read_text()))  # noqa: ASYNC240 - procfs
                if self.peak_memory > self._limits.memory:
                    self._killed_for = ReaderDied(
                        "document.too_large", "reading the file needs too much memory"
                    )
                    os.killpg(self.pid, signal.SIGKILL)
                await asyncio.sleep(_MEMORY_CHECK_INTERVAL)


async def _spawn(folder: Path) -> asyncio.subprocess.Process:
    packages = [part for name, path in _PACKAGES.items() for part in (name, str(path))]
    with (folder / "stderr").open("wb") as stderr:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", _BOOT, *packages),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            cwd=folder,
            env={**_ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder)},
            start_new_session=True,
            limit=_MAX_RESPONSE,
        )


def _tail(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        return file.read()
    return b""


def _peak_memory(status: str) -> int:
    """Return the peak resident memory of /proc/<pid>/status in bytes."""
    _, _, rest = status.partition("VmHWM:")
    return int(rest.split(maxsplit=1)[0]) * 1024 if rest else 0
