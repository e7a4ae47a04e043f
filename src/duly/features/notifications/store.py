"""Notifications: who is to be told what, and what became of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.payload import canonical_json
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, rows
from duly.db.statements import statement

MOST_UNREAD = 1_000
"""How far unread notifications are counted."""
_LOOK = 1_000


class DeliveryStatus(StrEnum):
    """What became of a notification."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"
    SUPPRESSED = "suppressed"


@dataclass(frozen=True, slots=True)
class NewNotification:
    """Somebody who is to be told something."""

    org_id: UUID
    channel: str
    recipient: str
    template_key: str
    payload: Mapping[str, Any]
    """What the template may speak of."""
    created_by: str
    locale: str = "en"
    job_id: UUID | None = None
    """The job that it is about."""
    bucket: str | None = None
    """The same is told to the same recipient once in each; without it, once in a day of UTC."""
    scheduled_at: datetime | None = None
    """Not before then; without it, now."""


class Added(NamedTuple):
    """Under which id it is noted, and whether that was new."""

    notification_id: UUID
    created: bool


class Notification(BaseModel):
    """One notification as it is now."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    notification_id: UUID
    job_id: UUID | None
    channel: str
    recipient: str
    template_key: str
    locale: str
    payload: dict[str, Any]
    schedule_bucket: str
    subject: str | None
    """As it was told; None until then."""
    body: str | None
    delivery_status: DeliveryStatus
    attempt_count: int
    last_error: str | None
    delivery_job_id: UUID | None
    """The job that delivers it, or the message to the endpoint."""
    scheduled_at: datetime
    sent_at: datetime | None
    read_at: datetime | None
    created_by: str
    created_at: datetime


class Due(Notification):
    """One that is to be told now, and what its recipient wants."""

    suppressed_for: str | None
    """Why nothing is to be sent to them at all."""
    wanted: bool
    about: str | None = None
    """The subject of the job that it is about, if there is such a job."""
    hidden: bool = False
    """Whether whoever asked for it may no longer see what it is about."""

    @property
    def key(self) -> tuple[UUID, UUID]:
        """What its row is found by."""
        return self.org_id, self.notification_id

    @property
    def refusal(self) -> str | None:
        """Why it is not told, if so."""
        if self.suppressed_for is not None:
            return f"nothing is sent to this recipient: {self.suppressed_for}"
        if self.hidden:
            return "whoever asked for it may not see what it is about"
        return None if self.wanted else f"the recipient does not want {self.template_key}"


class Settled(NamedTuple):
    """What became of a try."""

    status: DeliveryStatus
    subject: str | None = None
    body: str | None = None
    error: str | None = None
    tries: int = 0


async def add(conn: Connection, new: Sequence[NewNotification]) -> list[Added]:
    """Note that people are to be told, on an engine session; what is noted already stays as it is.

    The answers are in the order of what was given. Delivering it is left to the chore that takes what is due.
    """
    if not new:
        return []
    document = {"rows": json.dumps([_row(place, one) for place, one in enumerate(new)])}
    made = {row["notification_id"] for row in await rows(conn, "notifications/add", document)}
    found = {row["place"]: row["notification_id"] for row in await rows(conn, "notifications/find", document)}
    added = []
    for place in range(len(new)):
        added.append(Added(found[place], found[place] in made))
        made.discard(found[place])  # the same twice is new once
    return added


async def take_due(conn: Connection, *, waiting: Collection[UUID], share: int) -> list[Due]:
    """What is due and in nobody's hands, so many of each org at most, without the orgs that wait."""
    values = {"waiting": [*waiting], "share": share, "look": _LOOK}
    return [Due.model_validate(row) for row in await rows(conn, "notifications/take_due", values)]


async def open_one(conn: Connection, org_id: UUID, notification_id: UUID) -> Due | None:
    """One that is still to be told; None if it was, or is unknown."""
    row = await first(conn, "notifications/open", _key(org_id, notification_id))
    return Due.model_validate(row) if row else None


async def settle(
    conn: Connection, ended: Mapping[tuple[UUID, UUID], Settled], *, job_id: UUID | None = None
) -> set[UUID]:
    """Write what became of tries, by org and id; which were still pending, and in the hands of this job."""
    document = [
        {"org_id": str(org_id), "notification_id": str(which), **one._asdict()}
        for (org_id, which), one in sorted(ended.items())
    ]
    values = {"rows": json.dumps(document), "job_id": job_id}
    return {row["notification_id"] for row in await rows(conn, "notifications/settle", values)}


async def hold(conn: Connection, org_id: UUID, ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """Those that nobody else hands over just now, locked, with when they were due."""
    found = await rows(conn, "notifications/hold", {"org_id": org_id, "notification_ids": [*ids]})
    return {row["notification_id"]: row["scheduled_at"] for row in found}


async def hand_over(conn: Connection, org_id: UUID, jobs: Mapping[UUID, UUID]) -> None:
    """Say which job delivers each of these, which are held."""
    values = {"org_id": org_id, "notification_ids": [*jobs], "job_ids": [*jobs.values()]}
    await conn.execute(statement("notifications/hand_over"), values)


async def hand_to_endpoint(conn: Connection, told: Mapping[UUID, tuple[Due, str, str]]) -> set[UUID]:
    """Make messages to webhooks of these, with subject and body; which of them have an endpoint."""
    document = [
        {
            "org_id": str(due.org_id),
            "notification_id": str(which),
            "endpoint_id": due.recipient,
            "subject": subject,
            "body": body,
        }
        for which, (due, subject, body) in sorted(told.items())
    ]
    found = await rows(conn, "notifications/hand_to_endpoint", {"rows": json.dumps(document)})
    return {row["notification_id"] for row in found}


async def end_lost(conn: Connection, *, limit: int) -> int:
    """End those that nobody delivers any more; how many."""
    return len(await rows(conn, "notifications/end_lost", {"limit": limit}))


async def read(conn: Connection, org_id: UUID, notification_id: UUID) -> Notification | None:
    """One notification of an org."""
    row = await first(conn, "notifications/read", _key(org_id, notification_id))
    return Notification.model_validate(row) if row else None


async def resend(conn: Connection, org_id: UUID, notification_id: UUID) -> Notification | None:
    """Have one told again that was not told; None if there is none of that id that ended so."""
    row = await first(conn, "notifications/resend", _key(org_id, notification_id))
    return Notification.model_validate(row) if row else None


async def floor(conn: Connection, org_id: UUID, before: UUID, *, look: int) -> UUID | None:
    """Where a look at so many ends, None if there are fewer; the transaction goes on in this order."""
    await conn.execute(PREFER_INDEX_ORDER)
    row = await first(conn, "notifications/floor", {"org_id": org_id, "before": before, "look": look})
    return row["notification_id"] if row else None


async def list_before(conn: Connection, values: Mapping[str, Any]) -> list[Notification]:
    """The next notifications of an org, the newest first."""
    return [Notification.model_validate(row) for row in await rows(conn, "notifications/list", values)]


async def inbox(conn: Connection, values: Mapping[str, Any]) -> list[Notification]:
    """What was told to somebody in the product, the newest first."""
    return [Notification.model_validate(row) for row in await rows(conn, "notifications/inbox", values)]


async def count_unread(conn: Connection, org_id: UUID, user_id: str) -> int:
    """How much of it they have not read, up to a number."""
    values = {"org_id": org_id, "user_id": user_id, "most": MOST_UNREAD}
    row = await first(conn, "notifications/count_unread", values)
    return int(row["unread"]) if row else 0


async def count_pending(conn: Connection, org_id: UUID, most: int) -> int:
    """How many of an org are still to be told, up to a number."""
    row = await first(conn, "notifications/count_pending", {"org_id": org_id, "most": most})
    return int(row["pending"]) if row else 0


async def mark_read(conn: Connection, org_id: UUID, user_id: str, ids: Sequence[UUID] | None) -> int:
    """They have read these, or without ids all of it; how many were new to them."""
    values = {"org_id": org_id, "user_id": user_id, "notification_ids": None if ids is None else [*ids]}
    return (await conn.execute(statement("notifications/mark_read"), values)).rowcount


def _key(org_id: UUID, notification_id: UUID) -> dict[str, UUID]:
    return {"org_id": org_id, "notification_id": notification_id}


def _row(place: int, one: NewNotification) -> dict[str, Any]:
    return {
        "place": place,
        "org_id": str(one.org_id),
        "job_id": one.job_id and str(one.job_id),
        "channel": one.channel,
        "recipient": one.recipient,
        "template_key": one.template_key,
        "locale": one.locale,
        "payload": one.payload,
        "payload_hash": hashlib.sha256(canonical_json(one.payload).encode()).hexdigest(),
        "bucket": one.bucket,
        "scheduled_at": one.scheduled_at and one.scheduled_at.isoformat(),
        "created_by": one.created_by,
    }
