"""A worker in a process of its own, which is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def doomed(*where: str) -> AsyncIterator[None]:
    """It works while the block lasts; then it is killed, whatever it does."""
    command = [sys.executable, "-m", "tests.apps.documents.reading_process", *where]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=Path(__file__).parents[3], **pipes)  # type: ignore[call-overload]
    try:
        yield
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)
