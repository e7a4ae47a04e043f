"""Gates: what an org, a job type, or a job type of an org may have started, running and waiting."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import dict_row
from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.statements import statement

EVERY_ORG = UUID(int=0)
EVERY_TYPE = ""


class GateKey(NamedTuple):
    """Whose gate: the zero uuid stands for every org, the empty text for every job type."""

    org_id: UUID = EVERY_ORG
    job_type: str = EVERY_TYPE

    @property
    def name(self) -> str:
        """The gate in a word."""
        parts = [f"org:{self.org_id}"] if self.org_id != EVERY_ORG else []
        return "/".join([*parts, *([f"job_type:{self.job_type}"] if self.job_type else [])])

    @property
    def bit(self) -> int:
        """The mark that a running job carries when this gate counted it."""
        if self.job_type == EVERY_TYPE:
            return 1
        return 2 if self.org_id == EVERY_ORG else 4


class Limit(BaseModel):
    """What is limited or paused, and how much of it is used. None is no limit."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID | None
    """None: of every org."""
    job_type: str | None
    """None: of every job type."""
    max_running: int | None = None
    starts_per_second: float | None = None
    burst: int | None = None
    max_waiting: int | None = None
    paused_at: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    running: int = 0
    """Jobs that run and were counted; only a gate with a limit of its own counts."""
    available: float | None = None
    """Starts that the rate would allow at once, now."""
    updated_at: datetime | None = None

    @property
    def key(self) -> GateKey:
        """What its row is found by."""
        return GateKey(self.org_id or EVERY_ORG, self.job_type or EVERY_TYPE)

    @property
    def counts(self) -> bool:
        """Whether running jobs are counted."""
        return self.max_running is not None or self.starts_per_second is not None


async def read(conn: Connection, key: GateKey) -> Limit | None:
    """One gate, if somebody has ever set it."""
    return await _limit(conn, "limits/read", key)


async def lock(conn: Connection, key: GateKey) -> Limit | None:
    """One gate, held for a change: no job passes it meanwhile."""
    return await _limit(conn, "limits/lock", key)


async def create(conn: Connection, key: GateKey) -> None:
    """Make an open gate, if there is none. From now on its job type waits in a lane of its own."""
    await conn.execute(statement("limits/create"), key._asdict())


async def change(conn: Connection, key: GateKey, values: Mapping[str, Any]) -> None:
    """Give a locked gate other values."""
    await conn.execute(statement("limits/change"), {**key._asdict(), **values})


async def count_running(conn: Connection, key: GateKey) -> int:
    """Let a locked gate count what runs already; how many that were."""
    cursor = await conn.execute(statement("limits/count_running"), {**key._asdict(), "bit": key.bit})
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def list_after(
    conn: Connection, after: GateKey, *, org_id: UUID | None, job_type: str | None, limit: int
) -> list[Limit]:
    """The gates in the order of their key; of one org or of one job type, if so wished."""
    values = {"after_org": after.org_id, "after_type": after.job_type, "org_id": org_id}
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("limits/list"), {**values, "job_type": job_type, "limit": limit})
        return [Limit.model_validate(row) async for row in cursor]


async def _limit(conn: Connection, name: str, key: GateKey) -> Limit | None:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), key._asdict())
        row = await cursor.fetchone()
    return Limit.model_validate(row) if row else None
