"""The table of subscriptions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import read_all, read_first, rows
from duly.db.statements import statement
from duly.features.subscriptions.models import Subscription


async def create(conn: Connection, values: Mapping[str, Any]) -> Subscription:
    """Create a subscription, on an engine session."""
    [created] = await read_all(conn, Subscription, "subscriptions/create", values)
    return created


async def find(conn: Connection, values: Mapping[str, Any]) -> Subscription | None:
    """Return the subscription with the same values, if there is one."""
    return await read_first(conn, Subscription, "subscriptions/find", values)


async def count(conn: Connection, values: Mapping[str, Any]) -> tuple[int, int]:
    """Count the subscriptions of a job, or those without a job; and those of them by the same creator."""
    [row] = await rows(conn, "subscriptions/count", values)
    return int(row["subscriptions"]), int(row["own"])


async def read(conn: Connection, org_id: UUID, subscription_id: UUID) -> Subscription | None:
    """Return a subscription of an org."""
    key = {"org_id": org_id, "subscription_id": subscription_id}
    return await read_first(conn, Subscription, "subscriptions/read", key)


async def list_before(conn: Connection, values: Mapping[str, Any]) -> list[Subscription]:
    """Return the next subscriptions of an org, newest first."""
    return await read_all(conn, Subscription, "subscriptions/list", values)


async def delete(conn: Connection, org_id: UUID, subscription_id: UUID) -> Subscription | None:
    """Delete a subscription, and return it."""
    key = {"org_id": org_id, "subscription_id": subscription_id}
    return await read_first(conn, Subscription, "subscriptions/delete", key)


async def delete_of_user(conn: Connection, org_id: UUID, user_id: str) -> None:
    """Delete the in-app subscriptions of a user who left the org."""
    await conn.execute(statement("subscriptions/delete_of_user"), {"org_id": org_id, "user_id": user_id})


async def match(
    conn: Connection,
    jobs: Sequence[tuple[UUID, UUID]],
    xids: Sequence[str | None],
    *,
    only: UUID | None = None,
) -> list[dict[str, Any]]:
    """Return the subscriptions that match ended jobs, with the outcome; with `only`, of one subscription."""
    values = {
        "org_ids": [org_id for org_id, _ in jobs],
        "job_ids": [job_id for _, job_id in jobs],
        "xids": [*xids],
        "only": only,
    }
    return await rows(conn, "subscriptions/match", values)


async def mark_notified(conn: Connection, keys: Collection[tuple[UUID, UUID]]) -> None:
    """Record that the recipients of subscriptions were notified."""
    org_ids, subscription_ids = zip(*keys, strict=True)
    values = {"org_ids": [*org_ids], "subscription_ids": [*subscription_ids]}
    await conn.execute(statement("subscriptions/mark_notified"), values)
