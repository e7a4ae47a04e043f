"""Chores: done again and again, each at its own pace, until they are told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol, runtime_checkable

import psycopg

from duly.model.errors import StoreError

log = logging.getLogger("duly.upkeep")
_AFTER_TROUBLE = timedelta(seconds=2)


class Chore(Protocol):
    """Something that is due from time to time."""

    name: str

    async def once(self) -> timedelta:
        """Do what is due, bounded; how long until the next look (zero: there is more)."""


@runtime_checkable
class Ending(Protocol):
    """A chore that has something under way between two looks."""

    async def end(self) -> None:
        """Bring it to an end, soon: nobody looks again."""


async def keep_up(chores: Sequence[Chore], stop: asyncio.Event) -> None:
    """Do all chores until `stop` is set. A chore that fails is tried again; it never stops the others."""
    async with asyncio.TaskGroup() as group:
        for chore in chores:
            group.create_task(_repeat(chore, stop), name=f"duly-{chore.name}")


async def _repeat(chore: Chore, stop: asyncio.Event) -> None:
    while not stop.is_set():
        delay = await _attempt(chore)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay.total_seconds()):
                await stop.wait()
    if isinstance(chore, Ending):
        await _end(chore, chore.name)


async def _end(chore: Ending, name: str) -> None:
    try:
        await chore.end()
    except Exception as error:
        log.warning("%s did not end in good order: %s", name, error)


async def _attempt(chore: Chore) -> timedelta:
    try:
        return await chore.once()
    except (psycopg.Error, StoreError) as error:
        log.warning("%s could not be done, trying again: %s", chore.name, error)
    except Exception:
        log.exception("%s failed, trying again", chore.name)
    return _AFTER_TROUBLE
