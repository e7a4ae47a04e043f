"""Pictures of pages, drawn by a process that may die of them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_INSIDE = Path(__file__).with_name("page_images_child.py")
_SECONDS = 120.0
"""For a piece of a document, however many pages it has."""
_DEATHS = 3
"""After so many the file is at fault, not a page of it."""
_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": os.defpath, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def kind_of(media_type: str) -> str | None:
    """How a file is drawn; none if only its text can be shown."""
    if media_type == "application/pdf":
        return "pdf"
    return "picture" if media_type.startswith("image/") and media_type != "image/svg+xml" else None


async def drawn(path: Path, kind: str, first: int, last: int, folder: Path) -> dict[int, Path]:
    """The pictures of those pages, as far as they can be drawn. What cannot is left out."""
    following = first
    for _ in range(_DEATHS):
        done, alive = await _run(path, kind, following, last, folder)
        following = max([following - 1, *done]) + 1
        if alive or following > last:
            break
        following += 1  # the page that it died of
    return {number: file for number in range(first, last + 1) if (file := folder / f"{number}.jpg").is_file()}


async def _run(path: Path, kind: str, first: int, last: int, folder: Path) -> tuple[list[int], bool]:
    """The pages that it was done with, and whether it ended by itself: a broken file stays broken."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_INSIDE), str(path), kind, str(first), str(last), str(folder)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=folder,
        env={**_ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder)},
        start_new_session=True,
    )
    assert process.stdout is not None
    done: list[int] = []
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS):
                async for line in process.stdout:
                    done.append(int(line))  # noqa: PERF401 - what came before the time was over counts
                return done, await process.wait() >= 0
        return done, False
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())
