"""Switch on the plain path once no worker of an earlier release is left that does not know it."""

from __future__ import annotations

from datetime import timedelta

from duly.db.statements import statement
from duly.jobs.application import App

_INTERVAL, _DONE = timedelta(minutes=1), timedelta(days=1)


class PlainPathSwitch:
    """The chore that ends an upgrade from 0.9: from then on, workers of 0.9 can no longer start."""

    name = "plain_path"

    def __init__(self, app: App) -> None:
        self._app = app

    async def once(self) -> timedelta:
        """Switch it on if possible; there is nothing more to do then."""
        async with (await self._app.resources()).database.engine() as conn:
            row = await (await conn.execute(statement("jobs/enable_plain_path"))).fetchone()
        return _DONE if row is not None and row[0] else _INTERVAL
