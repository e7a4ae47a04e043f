"""The table of subscriptions, and the notifications of subscribers when jobs end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any
from uuid import UUID

from duly.core.states import TERMINAL_EVENT
from duly.db.pool import Connection
from duly.db.rows import read_all, read_first, rows
from duly.db.statements import statement
from duly.features.events.models import RelayedEvent
from duly.features.notifications.service import NewNotification, add_notifications
from duly.features.subscriptions.models import Subscription

_TERMINAL_EVENTS = frozenset(TERMINAL_EVENT.values())
_MAX_BATCH = 1_000


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


async def notify(conn: Connection, events: Sequence[RelayedEvent]) -> None:
    """Write the notifications of the jobs that ended by these events, on the session of the relay."""
    ended = [event for event in events if event.event_type in _TERMINAL_EVENTS]
    if ended:
        values = {
            "org_ids": [event.org_id for event in ended],
            "job_ids": [event.job_id for event in ended],
            "xids": [str(event.commit_xid) for event in ended],
            "only": None,
        }
        await _notify(conn, values)


async def notify_now(conn: Connection, org_id: UUID, job_id: UUID, subscription_id: UUID) -> None:
    """Notify one subscriber if the job has ended: the relay may have passed its event already.

    If the relay notifies too, both write the same notification, and it is sent once.
    """
    values = {"org_ids": [org_id], "job_ids": [job_id], "xids": [None], "only": subscription_id}
    await _notify(conn, values)


async def _notify(conn: Connection, values: Mapping[str, Any]) -> None:
    matches = await rows(conn, "subscriptions/match", values)
    if not matches:
        return
    for start in range(0, len(matches), _MAX_BATCH):
        batch = matches[start : start + _MAX_BATCH]
        await add_notifications(conn, [_notification(match) for match in batch])
    org_ids, subscription_ids = zip(
        *{(match["org_id"], match["subscription_id"]) for match in matches}, strict=True
    )
    keys = {"org_ids": [*org_ids], "subscription_ids": [*subscription_ids]}
    await conn.execute(statement("subscriptions/mark_notified"), keys)


def _notification(match: Mapping[str, Any]) -> NewNotification:
    return NewNotification(
        org_id=match["org_id"],
        channel=match["channel"],
        recipient=match["recipient"],
        template_key=f"job.{match['ended']}",
        payload=_payload(match),
        created_by=match["created_by"],
        locale=match["locale"],
        job_id=match["job_id"],
        bucket=str(match["subscription_id"]),
    )


def _payload(match: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for the template. None of them changes later: one end is notified once."""
    finished_at = match["finished_at"].astimezone(UTC).isoformat(timespec="microseconds")
    return {
        **{name: match[name] for name in ("job_type", "subject_id", "status", "outcome", "error_code")},
        "job_id": str(match["job_id"]),
        "finished_at": finished_at.replace("+00:00", "Z"),
    }
