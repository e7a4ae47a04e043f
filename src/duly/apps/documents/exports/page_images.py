"""Render pages to images in a child process, which may crash on a malicious file."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_CHILD = Path(__file__).with_name("page_images_child.py")
_TIMEOUT = 120.0
"""Seconds for a range of pages, however many it has."""
_MAX_CRASHES = 3
"""After that many crashes the file is at fault, not one of its pages."""
_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": os.defpath, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def renderer_for(media_type: str) -> str | None:
    """Return the renderer for a media type; None if only the text can be exported."""
    if media_type == "application/pdf":
        return "pdf"
    return "picture" if media_type.startswith("image/") and media_type != "image/svg+xml" else None


async def render_pages(path: Path, renderer: str, first: int, last: int, folder: Path) -> dict[int, Path]:
    """Return the images of a range of pages; pages that cannot be rendered are left out."""
    start = first
    for _ in range(_MAX_CRASHES):
        done, exited = await _run(path, renderer, start, last, folder)
        start = max([start - 1, *done]) + 1
        if exited or start > last:
            break
        start += 1  # skip the page that it crashed on
    return {
        number: image for number in range(first, last + 1) if (image := folder / f"{number}.jpg").is_file()
    }


async def _run(path: Path, renderer: str, first: int, last: int, folder: Path) -> tuple[list[int], bool]:
    """Return the finished pages, and whether the child exited by itself: then a retry would not help."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_CHILD), str(path), renderer, str(first), str(last), str(folder)),
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
            async with asyncio.timeout(_TIMEOUT):
                async for line in process.stdout:
                    done.append(int(line))  # noqa: PERF401 - pages before the timeout count
                return done, await process.wait() >= 0
        return done, False
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())
