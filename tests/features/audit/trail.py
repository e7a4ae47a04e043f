"""An org with an audit trail that tests tamper with."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly
from duly.features.audit.models import AuditReport
from duly.features.audit.sealer import Sealer
from duly.jobs import store as job_store
from tests.db.open_transactions import wait_for_transactions

ANNA = Actor.operator("anna")


class Trail:
    """An org with an audit trail: entries numbered by their target, three to a seal."""

    def __init__(self, app: Duly, org: uuid.UUID, sql: psycopg.Connection) -> None:
        self.app = app
        self.org = org
        self.sql = sql

    async def write(self, *numbers: int, at: str | None = None) -> None:
        """Write entries in one transaction, optionally at a given time."""
        async with (await self.app.resources()).database.engine() as conn:
            await conn.execute("select set_config('duly.now', %s, true)", [at or ""])
            for n in numbers:
                action = "queue.paused" if n % 2 else "queue.resumed"
                await job_store.record_audit_entry(
                    conn, org_id=self.org, actor=ANNA, action=action, target_type="queue", target_id=str(n)
                )

    async def seal(self) -> None:
        wait_for_transactions(self.sql)
        while not await Sealer(self.app, batch=3).once():
            pass

    async def verify(self, **options: Any) -> AuditReport:
        return await self.app.audit.verify(self.org, **options)

    def entry(self, n: int) -> uuid.UUID:
        query = "select entry_id from duly.audit_entries where org_id = %s and target_id = %s"
        row = self.sql.execute(query, [self.org, str(n)]).fetchone()
        assert row
        return uuid.UUID(str(row[0]))


@pytest.fixture
async def trail(app: Duly, org: uuid.UUID, sql: psycopg.Connection) -> Trail:
    """Eight entries: 1 to 3, 4 to 6, 7 and 8, in three seals."""
    trail = Trail(app, org, sql)
    for start in (1, 4):
        await trail.write(*range(start, start + 3))
        await trail.seal()
    await trail.write(7, 8)
    await trail.seal()
    return trail
