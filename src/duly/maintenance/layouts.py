"""Switch on the layout of this release once no worker of an earlier release is left that does not know it."""

from __future__ import annotations

from datetime import timedelta

from duly.db.statements import statement
from duly.jobs.application import App

_MOVED_KEYS = 1_000
_INTERVALS = {
    None: timedelta(minutes=1),  # workers of an earlier release may live
    False: timedelta(milliseconds=100),  # idempotency keys are being moved
    True: timedelta(days=1),
}


class LayoutSwitch:
    """The chore that ends an upgrade from 0.9: from then on, workers of 0.9 can no longer start."""

    name = "layouts"

    def __init__(self, app: App) -> None:
        self._app = app

    async def once(self) -> timedelta:
        """Switch it on if possible; there is nothing more to do then."""
        async with (await self._app.resources()).database.engine() as conn:
            cursor = await conn.execute(statement("jobs/enable_lean_records"), {"limit": _MOVED_KEYS})
            row = await cursor.fetchone()
        return _INTERVALS[row[0] if row else None]
