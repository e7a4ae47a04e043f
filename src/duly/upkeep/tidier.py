"""Waiting jobs come and go in one small table. What is gone is cleaned up before it slows down the claims."""

from __future__ import annotations

from datetime import timedelta

from duly.client.app import App
from duly.store import tables

_EVERY, _AT_MOST = timedelta(seconds=2), timedelta(minutes=1)


class Tidier:
    """The chore that cleans the tables of waiting and held jobs: autovacuum comes too seldom for them."""

    name = "tidier"

    def __init__(self, app: App, *, most: int = 10_000) -> None:
        self._app = app
        self._most = most
        self._pause = _EVERY

    async def once(self) -> timedelta:
        """Clean what is littered."""
        database = (await self._app.ground()).database
        found = await tables.littered(database, most=self._most)
        for table in found:
            await tables.clean(database, table)
        left = set(await tables.littered(database, most=self._most)) if found else set()
        # An old transaction still sees it, or it is not ours: that takes its time. Or somebody else is
        # at it just now: that does not.
        in_vain = bool(found) and left >= set(found)
        self._pause = min(2 * self._pause, _AT_MOST) if in_vain else _EVERY
        return self._pause
