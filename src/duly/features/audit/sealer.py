"""The audit sealer: adds new audit entries to the hash chains of their orgs.

One sealer works at a time: it locks the mark that says how far sealing has come. Seals and mark are written
in one transaction, so a crash leaves both or neither, and the next sealer continues from the mark.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from duly.db.database import retry_transaction
from duly.features.audit import store
from duly.features.audit.chain import entry_position, make_seals
from duly.jobs.application import App

log = logging.getLogger("duly.maintenance")


class Sealer:
    """The background task that seals new entries of the audit trail, org by org."""

    name = "sealer"

    def __init__(self, app: App, *, every: timedelta = timedelta(seconds=10), batch: int = 500) -> None:
        self._app = app
        self._every = every
        self._batch = batch

    async def once(self) -> timedelta:
        """Seal up to a batch of entries; return the pause until the next round, zero if more wait."""
        return timedelta(0) if await retry_transaction(self._seal_batch) == self._batch else self._every

    async def _seal_batch(self) -> int:
        async with (await self._app.resources()).database.engine() as conn:
            mark = await store.lock_mark(conn)
            if mark is None:
                return 0
            if mark.ahead:
                log.error(
                    "the audit trail was restored from a server with more transactions;"
                    " see docs/operate/audit.md"
                )
                return 0
            entries = await store.read_unsealed(conn, mark.position, limit=self._batch)
            if not entries:
                return 0
            by_org: defaultdict[UUID, list[dict[str, Any]]] = defaultdict(list)
            for entry in entries:
                by_org[entry["org_id"]].append(entry)
            last = await store.read_last_seals(conn, by_org)
            seals = [seal for org, new in by_org.items() for seal in make_seals(last.get(org), new, mark.now)]
            await store.write_seals(conn, seals, entry_position(entries[-1]))
        return len(entries)
