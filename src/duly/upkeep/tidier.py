"""Waiting jobs come and go in one small table. What is gone is cleaned up before it slows down the claims."""

from __future__ import annotations

from datetime import timedelta

from duly.client.app import App
from duly.store import tables

_EVERY = timedelta(seconds=2)
_LATER = timedelta(minutes=1)


class Tidier:
    """The chore that cleans the tables of waiting and held jobs: autovacuum comes too seldom for them."""

    name = "tidier"

    def __init__(self, app: App, *, most: int = 10_000) -> None:
        self._app = app
        self._most = most

    async def once(self) -> timedelta:
        """Clean what is littered."""
        database = (await self._app.ground()).database
        found = await tables.littered(database, most=self._most)
        for table in found:
            await tables.clean(database, table)
        if found and set(found) <= set(await tables.littered(database, most=self._most)):
            # Somebody's old transaction still sees them all, or we may not: trying again at once is useless.
            return _LATER
        return _EVERY
