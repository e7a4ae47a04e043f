"""Notifications: send, list, resend, read. The dispatcher and delivery jobs deliver them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from duly.core.errors import Conflict, ContractError, LimitExceeded, UnknownJob, UnknownNotification
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import (
    check_org_active,
    check_org_exists,
    org_uuid,
    require,
    required_text,
    required_uuid,
)
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.notifications import store
from duly.features.notifications.channels import Channel, Channels
from duly.features.notifications.models import (
    DeliveryStatus,
    Inbox,
    NewNotification,
    Notification,
    NotificationPage,
    SentNotification,
)
from duly.features.notifications.preferences import Preferences, Suppressions
from duly.features.notifications.recipient import (
    Recipient,
    check_endpoints,
    checked_bytes,
    checked_channel,
    mask_recipient,
)
from duly.features.notifications.store import add_notifications
from duly.features.pagination import decode_cursor, encode_cursor, page_size, split_page
from duly.features.templates.models import (
    DEFAULT_LOCALE,
    MessageText,
    checked_locale,
    checked_template_key,
)
from duly.features.templates.service import (
    Templates,
    checked_payload,
    find_templates,
    resolve_template,
    unknown_template,
)
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid, checked_text

__all__ = ["NewNotification", "Notifications", "add_notifications"]

MAX_RECIPIENTS_PER_CALL = 100
MAX_PENDING_PER_ORG = 10_000
"""Further notifications of callers are refused; those of Duly itself are not."""
_MAX_BUCKET_BYTES = 200
_RESERVED_KEYS = ("alert.", "webhook.")
_MAX_YEAR = 9998
_MAX_SCANNED_ROWS = 5_000
_MIN_ID, _MAX_ID = UUID(int=0), UUID(int=2**128 - 1)


class Notifications:
    """The notifications of the orgs of an application."""

    def __init__(self, app: App, *, public_url: str = "") -> None:
        self._app = app
        self.public_url = public_url
        self.channels = Channels()

    @cached_property
    def templates(self) -> Templates:
        """The templates of orgs."""
        return Templates(self._app)

    @cached_property
    def preferences(self) -> Preferences:
        """The preferences of recipients."""
        return Preferences(self._app)

    @cached_property
    def suppressions(self) -> Suppressions:
        """The suppressed recipients."""
        return Suppressions(self._app)

    def add_channel(self, name: str, channel: Channel) -> None:
        """Add a channel, in the processes that run workers: `add_channel("sms", channel)`."""
        self.channels.add(name, channel)

    async def send(
        self,
        org_id: UUID | str,
        template_key: str,
        payload: Mapping[str, Any],
        *,
        to: Iterable[Recipient | str],
        locale: str = DEFAULT_LOCALE,
        scheduled_for: datetime | None = None,
        bucket: str | None = None,
        job_id: UUID | str | None = None,
        actor: Actor,
    ) -> list[SentNotification]:
        """Send a notification to some recipients, now or at a time: to all of them, or to none.

        A recipient gets the same payload once per bucket; by default once per day in UTC.
        """
        recipients = _checked_recipients(to)
        template = NewNotification(
            org_id=org_uuid(org_id),
            channel="",
            recipient="",
            template_key=_checked_key(template_key),
            payload=checked_payload(payload),
            created_by=change_request(actor, None, optional=True).by,
            locale=checked_locale(locale),
            job_id=as_uuid("job_id", job_id),
            bucket=bucket and checked_bytes("bucket", required_text("bucket", bucket), _MAX_BUCKET_BYTES),
            scheduled_at=_checked_time(scheduled_for),
        )

        async def change(conn: Connection) -> list[SentNotification]:
            await _check_sendable(conn, template, recipients)
            new = [replace(template, channel=to.channel, recipient=to.address) for to in recipients]
            added = await add_notifications(conn, new)
            return [
                SentNotification(one.notification_id, recipient, one.created)
                for one, recipient in zip(added, recipients, strict=True)
            ]

        return await audited_transaction(self._app, change)

    async def list(
        self,
        org_id: UUID | str,
        *,
        status: DeliveryStatus | str | None = None,
        channel: str | None = None,
        recipient: str | None = None,
        job_id: UUID | str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> NotificationPage:
        """Return the notifications of an org, newest first; an unknown org raises."""
        org, size, before = org_uuid(org_id), page_size(limit), decode_cursor(after, UUID) or _MAX_ID
        filters = {
            "status": _checked_status(status),
            "channel": None if channel is None else checked_channel(channel),
            "recipient": checked_text("recipient", recipient),
            "job_id": as_uuid("job_id", job_id),
        }
        scan_end = None
        async with self._app.tenant_session(org) as conn:
            if not _has_index(filters):
                scan_end = await store.find_scan_end(conn, org, before, max_rows=_MAX_SCANNED_ROWS)
            values = {"org_id": org, "before": before, "scan_end": scan_end or _MIN_ID, **filters}
            rows = await store.list_notifications(conn, {**values, "limit": size + 1})
            if not rows:
                await check_org_exists(conn, org)
        page, cursor = split_page(rows, size, lambda last: last.notification_id)
        return NotificationPage(page, cursor or (encode_cursor(scan_end) if scan_end else None))

    async def resend(
        self, org_id: UUID | str, notification_id: UUID | str, *, actor: Actor, reason: str
    ) -> Notification:
        """Send a failed or suppressed notification again; a pending one stays as it is.

        Preferences and suppressions are checked again.
        """
        org, id_ = org_uuid(org_id), required_uuid("notification_id", notification_id)
        request = change_request(actor, reason)

        async def change(conn: Connection) -> Notification:
            resent = await store.resend(conn, org, id_)
            if resent is None:
                current = _require_notification(await store.read_notification(conn, org, id_), id_)
                if current.delivery_status is DeliveryStatus.SENT:
                    raise Conflict("the notification was sent", field="notification_id", fix="send a new one")
                return current
            recipient = mask_recipient(resent.channel, resent.recipient)
            detail = {"to": recipient, "template_key": resent.template_key}
            await record_entry(conn, request, org, "notification.resent", str(id_), **detail)
            return resent

        return await audited_transaction(self._app, change)

    async def show(self, org_id: UUID | str, notification_id: UUID | str) -> Notification:
        """Return a notification; an unknown id raises."""
        org, id_ = org_uuid(org_id), required_uuid("notification_id", notification_id)
        async with self._app.tenant_session(org) as conn:
            return _require_notification(await store.read_notification(conn, org, id_), id_)

    async def inbox(
        self,
        org_id: UUID | str,
        user_id: str,
        *,
        unread: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> Inbox:
        """Return the in-app notifications of a user, newest first, or only the unread ones."""
        org, user, size = org_uuid(org_id), required_text("user_id", user_id), page_size(limit)
        values = {"org_id": org, "user_id": user, "unread": unread, "before": decode_cursor(after, UUID)}
        async with self._app.tenant_session(org) as conn:
            # Count first: one that arrives in between is listed and not counted, never the reverse.
            unread_count = await store.count_unread(conn, org, user)
            rows = await store.list_inbox(conn, {**values, "limit": size + 1})
        return Inbox(*split_page(rows, size, lambda last: last.notification_id), unread_count)

    async def mark_read(
        self, org_id: UUID | str, user_id: str, ids: Iterable[UUID | str] | None = None
    ) -> int:
        """Mark in-app notifications of a user as read, without ids all; return how many were unread."""
        org, user = org_uuid(org_id), required_text("user_id", user_id)
        chosen = None if ids is None else [required_uuid("ids", one) for one in ids]
        return await audited_transaction(self._app, lambda conn: store.mark_read(conn, org, user, chosen))

    async def preview(
        self,
        org_id: UUID | str,
        template_key: str | None = None,
        *,
        subject: str | None = None,
        body: str | None = None,
        locale: str = DEFAULT_LOCALE,
        payload: Mapping[str, Any] | None = None,
    ) -> MessageText:
        """Render a message; a value that the payload lacks is an error that names it."""
        return await self.templates.preview(
            org_id, template_key, subject=subject, body=body, locale=locale, payload=payload
        )


async def _check_sendable(conn: Connection, new: NewNotification, recipients: Sequence[Recipient]) -> None:
    """Raise if the org, template, job or an endpoint is unknown, or if too many notifications are pending."""
    await check_org_active(conn, new.org_id)
    if await store.count_pending(conn, new.org_id, MAX_PENDING_PER_ORG) >= MAX_PENDING_PER_ORG:
        raise LimitExceeded(
            f"{MAX_PENDING_PER_ORG} notifications are pending", field="to", fix="send more when they are sent"
        )
    templates = await find_templates(conn, new.org_id, [new.template_key])
    if resolve_template(templates, new.template_key, new.locale) is None:
        raise unknown_template(new.template_key, new.locale)
    if new.job_id is not None:
        job = await job_store.read_job(conn, new.org_id, new.job_id)
        require(job, UnknownJob, f"job {new.job_id}", field="job_id")
    await check_endpoints(conn, new.org_id, recipients)


def _require_notification(notification: Notification | None, notification_id: UUID) -> Notification:
    return require(
        notification, UnknownNotification, f"notification {notification_id}", field="notification_id"
    )


def _has_index(filters: Mapping[str, object]) -> bool:
    """Return whether an index serves the filters: none, a job, or a recipient on a channel."""
    names = {name for name, value in filters.items() if value is not None}
    return not names or "job_id" in names or names == {"channel", "recipient"}


def _checked_key(template_key: str) -> str:
    """Return a key that callers may use: those of alerts and webhooks are Duly's own."""
    if checked_template_key(template_key).startswith(_RESERVED_KEYS):
        raise ContractError(f"{template_key} is reserved", field="template_key", fix="use a key of your own")
    return template_key


def _checked_recipients(to: Iterable[Recipient | str]) -> list[Recipient]:
    values = [to] if isinstance(to, str | Recipient) else [*to]
    recipients = [*dict.fromkeys(Recipient.parse(value) for value in values)]
    if not 0 < len(recipients) <= MAX_RECIPIENTS_PER_CALL:
        raise ContractError(
            f"{len(recipients)} recipients", field="to", fix=f"pass 1 to {MAX_RECIPIENTS_PER_CALL}"
        )
    return recipients


def _checked_time(at: datetime | None) -> datetime | None:
    if at is not None and (at.tzinfo is None or at.year > _MAX_YEAR):
        raise ContractError(
            "without a time zone, or too far in the future",
            field="scheduled_for",
            fix="use datetime(..., tzinfo=UTC)",
        )
    return at


def _checked_status(status: DeliveryStatus | str | None) -> DeliveryStatus | None:
    try:
        return None if status is None else DeliveryStatus(status)
    except ValueError:
        raise ContractError(
            f"{status!r} is not a status", field="status", fix=f"use one of {', '.join(DeliveryStatus)}"
        ) from None
