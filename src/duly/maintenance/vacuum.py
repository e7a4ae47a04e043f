"""Vacuum the small tables of queued and held jobs, before dead rows slow down the claims."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, get_args

from duly.db.database import Database
from duly.db.statements import statement
from duly.jobs.application import App

_INTERVAL, _MAX_INTERVAL = timedelta(seconds=2), timedelta(minutes=1)
QueueTable = Literal["ready", "scheduled", "claims", "active_runs"]
"""The tables whose rows come and go with every job."""


class QueueVacuum:
    """The chore that vacuums the queue tables: autovacuum comes too seldom for them."""

    name = "vacuum"

    def __init__(self, app: App, *, max_dead_rows: int = 10_000) -> None:
        self._app = app
        self._max_dead_rows = max_dead_rows
        self._pause = _INTERVAL

    async def once(self) -> timedelta:
        """Vacuum the bloated tables."""
        database = (await self._app.resources()).database
        bloated = await self._bloated(database)
        for table in bloated:
            await database.vacuum(table)
        still_bloated = set(await self._bloated(database)) if bloated else set()
        # In vain: an old transaction still sees the dead rows, or the role may not vacuum. Both last a while.
        in_vain = bool(bloated) and still_bloated >= set(bloated)
        self._pause = min(2 * self._pause, _MAX_INTERVAL) if in_vain else _INTERVAL
        return self._pause

    async def _bloated(self, database: Database) -> list[QueueTable]:
        values = {"tables": list(get_args(QueueTable)), "max_dead_rows": self._max_dead_rows}
        async with database.engine_autocommit() as conn:
            cursor = await conn.execute(statement("tables/list_bloated"), values)
            return [row[0] for row in await cursor.fetchall()]
