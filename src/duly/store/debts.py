"""Callbacks that are owed to failed jobs: made with the failure, paid with the callback's own writes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple
from uuid import UUID

from duly.store.pool import Connection
from duly.store.statements import statement


class Debt(NamedTuple):
    """Which job's failure somebody is to be told of."""

    org_id: UUID
    job_id: UUID
    job_type: str


async def take(conn: Connection, debt: Debt) -> bool:
    """Whether it is ours to pay in this transaction."""
    cursor = await conn.execute(statement("bridge_debts/take"), _key(debt))
    return await cursor.fetchone() is not None


async def put_off(conn: Connection, debt: Debt, error: str) -> None:
    """It could not be paid now."""
    await conn.execute(statement("bridge_debts/put_off"), {**_key(debt), "error": error})


async def due(conn: Connection, job_types: Collection[str], *, limit: int) -> list[Debt]:
    """What is to be paid now."""
    values = {"job_types": list(job_types), "limit": limit}
    cursor = await conn.execute(statement("bridge_debts/due"), values)
    return [Debt(*row) for row in await cursor.fetchall()]


def _key(debt: Debt) -> dict[str, Any]:
    return {"org_id": debt.org_id, "job_id": debt.job_id}
