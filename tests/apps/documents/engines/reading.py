"""Reads whole files for the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from duly.apps.documents.elements import Engine, PageElements, UnreadableFile
from duly.apps.documents.engines import ReaderLimits, open_file

LIMITS = ReaderLimits(seconds_open=30, seconds_page=30)


class Outcome(NamedTuple):
    """What became of a file: its kind and pages, or the code."""

    kind: str
    pages: list[PageElements]
    code: str = "ok"


async def outcome(path: Path, engine: Engine = "fast", limits: ReaderLimits = LIMITS) -> Outcome:
    """Read all of it."""
    try:
        async with open_file(path, path.name, engine, limits) as reader:
            numbers = range(1, reader.pages + 1)
            return Outcome(reader.media_type, [page async for page in reader.read(numbers)])
    except UnreadableFile as why:
        return Outcome("", [], why.code)


async def outcomes(paths: Iterable[Path], engine: Engine = "fast") -> dict[str, Outcome]:
    """Read several, two at a time."""
    room = asyncio.Semaphore(2)

    async def one(path: Path) -> tuple[str, Outcome]:
        async with room:
            return path.name, await outcome(path, engine)

    return dict(await asyncio.gather(*(one(path) for path in paths)))
