"""The audit trail is sealed: what was written a moment ago can no longer be changed unnoticed.

One sealer works at a time; it holds the mark that says how far the sealing has come. Seals and mark are
written in one transaction, so a crash leaves both or neither, and whoever comes next goes on from there.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from duly.db.database import retry_transaction
from duly.features.audit import store as audit
from duly.features.audit.chain import make_seals, place_of
from duly.jobs.application import App

log = logging.getLogger("duly.maintenance")


class Sealer:
    """The chore that seals new entries of the audit trail, org by org."""

    name = "sealer"

    def __init__(self, app: App, *, every: timedelta = timedelta(seconds=10), batch: int = 500) -> None:
        self._app = app
        self._every = every
        self._batch = batch

    async def once(self) -> timedelta:
        """Seal the next entries, so many at most; zero if there are more."""
        return timedelta(0) if await retry_transaction(self._round) == self._batch else self._every

    async def _round(self) -> int:
        async with (await self._app.resources()).database.engine() as conn:
            held = await audit.hold_mark(conn)
            if held is None:
                return 0
            if held.ahead:
                log.error(
                    "the audit trail comes from a server with more transactions; see docs/operate/audit.md"
                )
                return 0
            entries = await audit.unsealed(conn, held.place, limit=self._batch)
            if not entries:
                return 0
            trails: defaultdict[UUID, list[dict[str, Any]]] = defaultdict(list)
            for entry in entries:
                trails[entry["org_id"]].append(entry)
            last = await audit.last_seals(conn, trails)
            seals = [
                seal for org, trail in trails.items() for seal in make_seals(last.get(org), trail, held.now)
            ]
            await audit.write_seals(conn, seals, place_of(entries[-1]))
        return len(entries)
