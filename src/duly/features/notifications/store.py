"""Statements on notifications, preferences and suppressions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from duly.core.payload import canonical_json
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, read_all, read_first, rows
from duly.db.statements import statement
from duly.features.notifications.models import (
    AddedNotification,
    DeliveryUpdate,
    DueNotification,
    NewNotification,
    Notification,
    Preference,
    Suppression,
)
from duly.features.templates.models import MessageText

MAX_UNREAD_COUNT = 1_000
_MAX_DUE_ROWS = 1_000


async def add_notifications(conn: Connection, new: Sequence[NewNotification]) -> list[AddedNotification]:
    """Add notifications on an engine session and return them in this order; existing ones stay as they are.

    The dispatcher delivers them.
    """
    if not new:
        return []
    documents = [_document(position, one) for position, one in enumerate(new)]
    document = {"rows": json.dumps(documents, default=str)}
    created = {row["notification_id"] for row in await rows(conn, "notifications/add", document)}
    existing = await rows(conn, "notifications/find_existing", document)
    ids = {row["position"]: row["notification_id"] for row in existing}
    added = []
    for position in range(len(new)):
        added.append(AddedNotification(ids[position], ids[position] in created))
        created.discard(ids[position])  # a duplicate within the batch is created once
    return added


async def list_due(
    conn: Connection, *, excluded_orgs: Collection[UUID], max_per_org: int
) -> list[DueNotification]:
    """Return due notifications without a delivery job, up to a number per org."""
    values = {"excluded_orgs": [*excluded_orgs], "max_per_org": max_per_org, "max_rows": _MAX_DUE_ROWS}
    return await read_all(conn, DueNotification, "notifications/list_due", values)


async def read_pending(conn: Connection, org_id: UUID, notification_id: UUID) -> DueNotification | None:
    """Read a pending notification; None if it was delivered or is unknown."""
    key = {"org_id": org_id, "notification_id": notification_id}
    return await read_first(conn, DueNotification, "notifications/read_pending", key)


async def settle(
    conn: Connection, updates: Mapping[tuple[UUID, UUID], DeliveryUpdate], *, job_id: UUID | None = None
) -> set[UUID]:
    """Write the results of deliveries by org and id; return the ids that were pending for this job."""
    document = [
        {"org_id": str(org_id), "notification_id": str(notification_id), **update._asdict()}
        for (org_id, notification_id), update in sorted(updates.items())
    ]
    values = {"rows": json.dumps(document), "job_id": job_id}
    return {row["notification_id"] for row in await rows(conn, "notifications/settle", values)}


async def lock_due(conn: Connection, org_id: UUID, ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """Lock those of these notifications that no other dispatcher holds; return when each was due."""
    found = await rows(conn, "notifications/lock_due", {"org_id": org_id, "notification_ids": [*ids]})
    return {row["notification_id"]: row["scheduled_at"] for row in found}


async def assign_jobs(conn: Connection, org_id: UUID, jobs: Mapping[UUID, UUID]) -> None:
    """Write the delivery jobs of locked notifications."""
    values = {"org_id": org_id, "notification_ids": [*jobs], "job_ids": [*jobs.values()]}
    await conn.execute(statement("notifications/assign_jobs"), values)


async def create_webhook_deliveries(
    conn: Connection, messages: Sequence[tuple[DueNotification, MessageText]]
) -> set[UUID]:
    """Create the webhook deliveries of notifications; return the ids of those whose endpoint is enabled."""
    document = [
        {
            "org_id": str(due.org_id),
            "notification_id": str(due.notification_id),
            "endpoint_id": due.recipient,
            **message._asdict(),
        }
        for due, message in sorted(messages, key=lambda pair: pair[0].notification_id)
    ]
    found = await rows(conn, "notifications/create_webhook_deliveries", {"rows": json.dumps(document)})
    return {row["notification_id"] for row in found}


async def fail_lost(conn: Connection, *, limit: int) -> int:
    """Fail notifications whose delivery job or endpoint has ended or is gone; return how many."""
    return len(await rows(conn, "notifications/fail_lost", {"limit": limit}))


async def read_notification(conn: Connection, org_id: UUID, notification_id: UUID) -> Notification | None:
    """Read a notification of an org."""
    key = {"org_id": org_id, "notification_id": notification_id}
    return await read_first(conn, Notification, "notifications/read", key)


async def resend(conn: Connection, org_id: UUID, notification_id: UUID) -> Notification | None:
    """Make a failed or suppressed notification pending again; None if it is not one of these."""
    key = {"org_id": org_id, "notification_id": notification_id}
    return await read_first(conn, Notification, "notifications/resend", key)


async def find_scan_end(conn: Connection, org_id: UUID, before: UUID, *, max_rows: int) -> UUID | None:
    """Return the id at which a scan of so many rows ends; None if there are fewer.

    The transaction reads in index order from here on.
    """
    await conn.execute(PREFER_INDEX_ORDER)
    values = {"org_id": org_id, "before": before, "max_rows": max_rows}
    row = await first(conn, "notifications/find_scan_end", values)
    return row["notification_id"] if row else None


async def list_notifications(conn: Connection, values: Mapping[str, Any]) -> list[Notification]:
    """Return the notifications of an org, newest first."""
    return await read_all(conn, Notification, "notifications/list", values)


async def list_inbox(conn: Connection, values: Mapping[str, Any]) -> list[Notification]:
    """Return the in-app notifications of a user, newest first."""
    return await read_all(conn, Notification, "notifications/list_inbox", values)


async def count_unread(conn: Connection, org_id: UUID, user_id: str) -> int:
    """Count the unread in-app notifications of a user, up to a maximum."""
    values = {"org_id": org_id, "user_id": user_id, "max_count": MAX_UNREAD_COUNT}
    [row] = await rows(conn, "notifications/count_unread", values)
    return int(row["unread"])


async def count_pending(conn: Connection, org_id: UUID, max_count: int) -> int:
    """Count the pending notifications of an org, up to a maximum."""
    [row] = await rows(conn, "notifications/count_pending", {"org_id": org_id, "max_count": max_count})
    return int(row["pending"])


async def mark_read(conn: Connection, org_id: UUID, user_id: str, ids: Sequence[UUID] | None) -> int:
    """Mark these in-app notifications of a user as read, or without ids all; return how many were unread."""
    values = {"org_id": org_id, "user_id": user_id, "notification_ids": None if ids is None else [*ids]}
    return (await conn.execute(statement("notifications/mark_read"), values)).rowcount


async def list_preferences(conn: Connection, values: Mapping[str, Any]) -> list[Preference]:
    """Return the preferences of a recipient by template."""
    return await read_all(conn, Preference, "preferences/list", values)


async def set_preference(conn: Connection, values: Mapping[str, Any]) -> None:
    """Set a preference of a recipient, or remove it if `wanted` is None."""
    verb = "remove" if values["wanted"] is None else "set"
    await conn.execute(statement(f"preferences/{verb}"), values)


async def add_suppression(conn: Connection, values: Mapping[str, Any]) -> Suppression | None:
    """Suppress a recipient; None if it was suppressed already."""
    return await read_first(conn, Suppression, "suppressions/add", values)


async def read_suppression(conn: Connection, values: Mapping[str, Any]) -> Suppression | None:
    """Read the suppression of a recipient."""
    return await read_first(conn, Suppression, "suppressions/read", values)


async def remove_suppression(conn: Connection, values: Mapping[str, Any]) -> Suppression | None:
    """End the suppression of a recipient; None if it was not suppressed."""
    return await read_first(conn, Suppression, "suppressions/remove", values)


async def list_suppressions(
    conn: Connection, org_id: UUID, after: tuple[str, str], *, limit: int
) -> list[Suppression]:
    """Return the suppressed recipients of an org after a channel and recipient, in that order."""
    values = {"org_id": org_id, "channel": after[0], "recipient": after[1], "limit": limit}
    return await read_all(conn, Suppression, "suppressions/list", values)


def _document(position: int, new: NewNotification) -> dict[str, Any]:
    values = {field.name: getattr(new, field.name) for field in fields(new)}
    payload_hash = hashlib.sha256(canonical_json(new.payload).encode()).hexdigest()
    return {**values, "position": position, "payload_hash": payload_hash}
