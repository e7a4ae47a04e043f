"""Read complete files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from duly.apps.documents.elements import Engine, PageElements, UnreadableFile
from duly.apps.documents.engines import ReaderLimits, open_file

LIMITS = ReaderLimits(seconds_open=30, seconds_page=30)


class ReadResult(NamedTuple):
    """The media type and the pages of a file, or the error code."""

    media_type: str
    pages: list[PageElements]
    code: str = "ok"


async def read_file(path: Path, engine: Engine = "fast", limits: ReaderLimits = LIMITS) -> ReadResult:
    """Read all pages of a file."""
    try:
        async with open_file(path, path.name, engine, limits) as reader:
            numbers = range(1, reader.pages + 1)
            return ReadResult(reader.media_type, [page async for page in reader.read(numbers)])
    except UnreadableFile as error:
        return ReadResult("", [], error.code)


async def read_files(paths: Iterable[Path], engine: Engine = "fast") -> dict[str, ReadResult]:
    """Read several files, two at a time."""
    slots = asyncio.Semaphore(2)

    async def one(path: Path) -> tuple[str, ReadResult]:
        async with slots:
            return path.name, await read_file(path, engine)

    return dict(await asyncio.gather(*(one(path) for path in paths)))
