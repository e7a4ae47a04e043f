"""Subscriptions: who wants to be told how jobs end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.states import TERMINAL_EVENT
from duly.db.pool import Connection
from duly.db.rows import first, rows
from duly.db.statements import statement
from duly.features.events.relay_store import Found
from duly.features.notifications import store as notifications
from duly.features.notifications.store import Added, NewNotification

_ENDS = frozenset(TERMINAL_EVENT.values())
_AT_ONCE = 1_000

OUTCOMES = ("completed", "failed", "dead", "canceled")
"""How jobs end. Whoever asks for those that failed is told of those that died, too."""


class Subscription(BaseModel):
    """Somebody who wants to be told how jobs end: one job, those of a type, or all."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    subscription_id: UUID
    job_id: UUID | None
    job_type: str | None
    outcomes: tuple[str, ...]
    channel: str
    recipient: str
    locale: str
    created_by: str
    created_at: datetime
    told_at: datetime | None
    """When there was last something to tell."""


async def create(conn: Connection, values: Mapping[str, Any]) -> Subscription:
    """Keep a subscription, on an engine session."""
    [row] = await rows(conn, "subscriptions/create", values)
    return Subscription.model_validate(row)


async def find(conn: Connection, values: Mapping[str, Any]) -> Subscription | None:
    """The same subscription, if there is one."""
    row = await first(conn, "subscriptions/find", values)
    return Subscription.model_validate(row) if row else None


async def count(conn: Connection, values: Mapping[str, Any]) -> tuple[int, int]:
    """How many there are of a job, or of an org's jobs at large; and how many of them somebody made."""
    [row] = await rows(conn, "subscriptions/count", values)
    return int(row["subscriptions"]), int(row["own"])


async def read(conn: Connection, org_id: UUID, subscription_id: UUID) -> Subscription | None:
    """One subscription of an org."""
    row = await first(conn, "subscriptions/read", _key(org_id, subscription_id))
    return Subscription.model_validate(row) if row else None


async def list_before(conn: Connection, values: Mapping[str, Any]) -> list[Subscription]:
    """The next subscriptions of an org, the newest first."""
    return [Subscription.model_validate(row) for row in await rows(conn, "subscriptions/list", values)]


async def remove(conn: Connection, org_id: UUID, subscription_id: UUID) -> Subscription | None:
    """End a subscription; which it was."""
    row = await first(conn, "subscriptions/remove", _key(org_id, subscription_id))
    return Subscription.model_validate(row) if row else None


async def end_of(conn: Connection, org_id: UUID, user_id: str) -> None:
    """Tell somebody nothing more in the product: they have left."""
    await conn.execute(statement("subscriptions/end_of"), {"org_id": org_id, "user_id": user_id})


async def tell(conn: Connection, found: Sequence[Found]) -> int:
    """Note who is to be told of the ends of jobs among these events, on the relay's session; how many."""
    ends = [one for one in found if one.event_type in _ENDS]
    if not ends:
        return 0
    values = {
        "org_ids": [one.org_id for one in ends],
        "job_ids": [one.job_id for one in ends],
        "xids": [str(one.commit_xid) for one in ends],
        "only": None,
    }
    return len(await _tell(conn, values))


async def tell_now(conn: Connection, org_id: UUID, job_id: UUID, subscription_id: UUID) -> list[Added]:
    """The same for one subscription, if its job has ended: the relay may have passed that event by.

    Should both come to it, they note the same, and it is told once.
    """
    values = {"org_ids": [org_id], "job_ids": [job_id], "xids": [None], "only": subscription_id}
    return await _tell(conn, values)


async def _tell(conn: Connection, values: Mapping[str, Any]) -> list[Added]:
    wanted = await rows(conn, "subscriptions/match", values)
    added: list[Added] = []
    for start in range(0, len(wanted), _AT_ONCE):
        part = [_notification(row) for row in wanted[start : start + _AT_ONCE]]
        added += await notifications.add(conn, part)
    if wanted:
        told = {(row["org_id"], row["subscription_id"]) for row in wanted}
        org_ids, subscription_ids = zip(*told, strict=True)
        marked = {"org_ids": [*org_ids], "subscription_ids": [*subscription_ids]}
        await conn.execute(statement("subscriptions/mark_told"), marked)
    return added


def _key(org_id: UUID, subscription_id: UUID) -> dict[str, UUID]:
    return {"org_id": org_id, "subscription_id": subscription_id}


def _notification(row: Mapping[str, Any]) -> NewNotification:
    return NewNotification(
        org_id=row["org_id"],
        channel=row["channel"],
        recipient=row["recipient"],
        template_key=f"job.{row['ended']}",
        payload=_facts(row),
        created_by=row["created_by"],
        locale=row["locale"],
        job_id=row["job_id"],
        bucket=str(row["subscription_id"]),
    )


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the template may speak of. Nothing that may change later: the same end is told once."""
    same = {name: row[name] for name in ("job_type", "subject_id", "status", "outcome", "error_code")}
    return {**same, "job_id": str(row["job_id"]), "finished_at": _instant(row["finished_at"])}


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
