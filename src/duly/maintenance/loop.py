"""Run chores repeatedly, each at its own interval, until they are stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol, runtime_checkable

import psycopg

from duly.core.errors import StoreError

log = logging.getLogger("duly.maintenance")
_RETRY_PAUSE = timedelta(seconds=2)


class Chore(Protocol):
    """A periodic maintenance task."""

    name: str

    async def once(self) -> timedelta:
        """Do a bounded part of what is due; return the time until the next run (zero: there is more)."""


@runtime_checkable
class StoppableChore(Protocol):
    """A chore with work under way between two runs."""

    async def end(self) -> None:
        """Finish the work under way soon; there is no further run."""


async def run_chores(chores: Sequence[Chore], stop: asyncio.Event) -> None:
    """Run all chores until `stop` is set. A chore that fails is retried; it never stops the others."""
    async with asyncio.TaskGroup() as group:
        for chore in chores:
            group.create_task(_repeat(chore, stop), name=f"duly-{chore.name}")


async def _repeat(chore: Chore, stop: asyncio.Event) -> None:
    while not stop.is_set():
        delay = await _run_once(chore)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay.total_seconds()):
                await stop.wait()
    if isinstance(chore, StoppableChore):
        try:
            await chore.end()
        except Exception as error:
            log.warning("chore %s did not end cleanly: %s", chore.name, error)


async def _run_once(chore: Chore) -> timedelta:
    try:
        return await chore.once()
    except (psycopg.Error, StoreError) as error:
        log.warning("chore %s failed, retrying: %s", chore.name, error)
    except Exception:
        log.exception("chore %s failed, retrying", chore.name)
    return _RETRY_PAUSE
