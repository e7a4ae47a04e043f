"""Notifications: sent, listed, read. Delivering them is left to a chore and to jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from duly.core.errors import Conflict, ContractError, LimitExceeded, UnknownJob, UnknownNotification
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_active, check_org_exists, org_uuid, required_text
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.notifications import store as notifications
from duly.features.notifications.channels import Channel, Channels
from duly.features.notifications.preferences import Preferences, Suppressions
from duly.features.notifications.recipients import (
    FALLBACK,
    Recipient,
    bounded,
    check_endpoints,
    checked_channel,
    checked_id,
    checked_key,
    checked_locale,
    masked,
)
from duly.features.notifications.store import DeliveryStatus, NewNotification, Notification
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.features.templates import store as wording
from duly.features.templates.lazy import Words
from duly.features.templates.service import Templates, checked_payload, resolved, unknown_template
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid, checked_text

__all__ = [
    "MOST_AT_ONCE",
    "MOST_PENDING",
    "DeliveryStatus",
    "Inbox",
    "Notification",
    "NotificationPage",
    "Notifications",
    "Sent",
]

MOST_AT_ONCE = 100
"""Recipients of one call."""
MOST_PENDING = 10_000
"""Of an org, until nothing more is taken from its callers; what Duly itself has to say is."""
_LONGEST_BUCKET = 200
_RESERVED = ("alert.", "webhook.")
_LAST_YEAR = 9998
_LOOK = 5_000
_NEWEST, _OLDEST = UUID(int=2**128 - 1), UUID(int=0)


@dataclass(frozen=True, slots=True)
class Sent:
    """Under which id somebody will be told, and whether that is new: the same is told once in a bucket."""

    notification_id: UUID
    recipient: Recipient
    created: bool


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """Some notifications; `after` asks for those that follow, and is None at the end.

    With a filter that no index serves, so many are looked at and no more: a page may then be short, even
    empty, although others follow.
    """

    notifications: tuple[Notification, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Inbox(NotificationPage):
    """What somebody was told in the product."""

    unread: int
    """How much of it they have not read; it is counted up to 1000."""


class Notifications:
    """What the people of the orgs of an application are told."""

    def __init__(self, app: App, *, public_url: str = "") -> None:
        self._app = app
        self.public_url = public_url
        self.channels = Channels()

    @cached_property
    def templates(self) -> Templates:
        """The orgs' own words."""
        return Templates(self._app)

    @cached_property
    def preferences(self) -> Preferences:
        """What recipients want to hear."""
        return Preferences(self._app)

    @cached_property
    def suppressions(self) -> Suppressions:
        """Whom nothing is sent to."""
        return Suppressions(self._app)

    def add_channel(self, name: str, channel: Channel) -> None:
        """Reach people in one more way, in the processes that run workers: `add_channel("sms", mine)`."""
        self.channels.add(name, channel)

    async def send(
        self,
        org_id: UUID | str,
        template_key: str,
        payload: Mapping[str, Any],
        *,
        to: Iterable[Recipient | str],
        locale: str = FALLBACK,
        scheduled_for: datetime | None = None,
        bucket: str | None = None,
        job_id: UUID | str | None = None,
        actor: Actor,
    ) -> list[Sent]:
        """Have people told, now or not before a time, by the template of a key: all of them, or none.

        The same payload is told to the same recipient once in a bucket; without one, once in a day of UTC.
        """
        recipients = _recipients(to)
        one = NewNotification(
            org_id=org_uuid(org_id),
            channel="",
            recipient="",
            template_key=_free_key(template_key),
            payload=checked_payload(payload),
            created_by=change_request(actor, None, optional=True).by,
            locale=checked_locale(locale),
            job_id=as_uuid("job_id", job_id),
            bucket=bucket and bounded("bucket", required_text("bucket", bucket), _LONGEST_BUCKET),
            scheduled_at=_checked_moment(scheduled_for),
        )

        async def change(conn: Connection) -> list[Sent]:
            await _check(conn, one, recipients)
            new = [_to(one, recipient) for recipient in recipients]
            added = await notifications.add(conn, new)
            return [Sent(a.notification_id, r, a.created) for a, r in zip(added, recipients, strict=True)]

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
        """The notifications of an org, the newest first; an unknown org raises."""
        whose, size, before = org_uuid(org_id), page_size(limit), decode_cursor(after, UUID) or _NEWEST
        choice = {
            "status": _checked_status(status),
            "channel": None if channel is None else checked_channel(channel),
            "recipient": checked_text("recipient", recipient),
            "job_id": as_uuid("job_id", job_id),
        }
        values = {"org_id": whose, "before": before, "limit": size + 1, **choice}
        async with self._app.tenant_session(whose) as conn:
            floor = None if _served(choice) else await notifications.floor(conn, whose, before, look=_LOOK)
            found = await notifications.list_before(conn, {**values, "floor": floor or _OLDEST})
            if not found:
                await check_org_exists(conn, whose)
        page, more = _page(found, size)
        return NotificationPage(page, more or (encode_cursor(floor) if floor else None))

    async def resend(
        self, org_id: UUID | str, notification_id: UUID | str, *, actor: Actor, reason: str
    ) -> Notification:
        """Have one told again that failed or was suppressed, at once; what is to be told anyway stays so.

        Its recipient is asked for again: whoever does not want it, or is suppressed, is told nothing now
        either.
        """
        whose, which = org_uuid(org_id), checked_id("notification_id", notification_id)
        who = change_request(actor, reason)

        async def change(conn: Connection) -> Notification:
            again = await notifications.resend(conn, whose, which)
            if again is None:
                return _unsent(await notifications.read(conn, whose, which))
            said = {"to": masked(again.channel, again.recipient), "template_key": again.template_key}
            await record_entry(conn, who, whose, "notification.resent", str(which), **said)
            return again

        return await audited_transaction(self._app, change)

    async def show(self, org_id: UUID | str, notification_id: UUID | str) -> Notification:
        """One notification; an unknown id raises."""
        whose, which = org_uuid(org_id), checked_id("notification_id", notification_id)
        async with self._app.tenant_session(whose) as conn:
            return _known(await notifications.read(conn, whose, which))

    async def inbox(
        self,
        org_id: UUID | str,
        user_id: str,
        *,
        unread: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> Inbox:
        """What somebody was told in the product, the newest first, or only what they have not read."""
        whose, who, size = org_uuid(org_id), required_text("user_id", user_id), page_size(limit)
        values = {"org_id": whose, "user_id": who, "unread": unread}
        async with self._app.tenant_session(whose) as conn:
            # Counted first: what comes in between is then shown and not counted, never the other way round.
            count = await notifications.count_unread(conn, whose, who)
            found = await notifications.inbox(
                conn, {**values, "before": decode_cursor(after, UUID), "limit": size + 1}
            )
        return Inbox(*_page(found, size), count)

    async def mark_read(
        self, org_id: UUID | str, user_id: str, ids: Iterable[UUID | str] | None = None
    ) -> int:
        """They have read these, or without ids everything; how many were new. Others' are left alone."""
        whose, who = org_uuid(org_id), required_text("user_id", user_id)
        chosen = None if ids is None else [checked_id("ids", one) for one in ids]
        return await audited_transaction(
            self._app, lambda conn: notifications.mark_read(conn, whose, who, chosen)
        )

    async def preview(
        self,
        org_id: UUID | str,
        template_key: str | None = None,
        *,
        subject: str | None = None,
        body: str | None = None,
        locale: str = FALLBACK,
        payload: Mapping[str, Any] | None = None,
    ) -> Words:
        """What a message would say; a value that the payload does not have is an error that names it."""
        return await self.templates.preview(
            org_id, template_key, subject=subject, body=body, locale=locale, payload=payload
        )


async def _check(conn: Connection, one: NewNotification, recipients: Sequence[Recipient]) -> None:
    """Raise for an org, a template, a job or an endpoint that is not there, and if too much is waiting."""
    await check_org_active(conn, one.org_id)
    if await notifications.count_pending(conn, one.org_id, MOST_PENDING) >= MOST_PENDING:
        raise LimitExceeded(
            f"{MOST_PENDING} notifications are waiting", field="to", fix="send more when they are told"
        )
    own = await wording.find_templates(conn, one.org_id, [one.template_key])
    if resolved(own, one.template_key, one.locale) is None:
        raise unknown_template(one.template_key, one.locale)
    if one.job_id is not None and await job_store.read_job(conn, one.org_id, one.job_id) is None:
        raise UnknownJob(f"no job {one.job_id} in this org", field="job_id", fix="check the id and the org")
    await check_endpoints(conn, one.org_id, recipients)


def _known(found: Notification | None) -> Notification:
    if found is None:
        raise UnknownNotification(
            "no notification of this id in this org",
            field="notification_id",
            fix="check id and org",
        )
    return found


def _unsent(found: Notification | None) -> Notification:
    """It, if it is still to be told."""
    if _known(found).delivery_status is DeliveryStatus.SENT:
        raise Conflict("it was sent", field="notification_id", fix="send a new one")
    return _known(found)


def _served(choice: Mapping[str, object]) -> bool:
    """Whether an index finds no more than what is asked for: all, a job's, or somebody's on a channel."""
    given = {name for name, value in choice.items() if value is not None}
    return not given or "job_id" in given or {"channel", "recipient"} == given


def _free_key(template_key: str) -> str:
    """A key that callers may use: nobody else sounds an alarm in Duly's name."""
    if checked_key(template_key).startswith(_RESERVED):
        raise ContractError("only Duly says this", field="template_key", fix="use a key of your own")
    return template_key


def _recipients(to: Iterable[Recipient | str]) -> list[Recipient]:
    said = [to] if isinstance(to, str | Recipient) else [*to]
    found = [*dict.fromkeys(Recipient.read(one) for one in said)]
    if not 0 < len(found) <= MOST_AT_ONCE:
        raise ContractError(f"{len(found)} recipients", field="to", fix=f"name 1 to {MOST_AT_ONCE}")
    return found


def _to(one: NewNotification, recipient: Recipient) -> NewNotification:
    return replace(one, channel=recipient.channel, recipient=recipient.address)


def _checked_moment(at: datetime | None) -> datetime | None:
    if at is not None and (at.tzinfo is None or at.year > _LAST_YEAR):
        raise ContractError(
            "no moment that can be kept", field="scheduled_for", fix="use datetime(..., tzinfo=UTC)"
        )
    return at


def _checked_status(status: DeliveryStatus | str | None) -> DeliveryStatus | None:
    try:
        return None if status is None else DeliveryStatus(status)
    except ValueError:
        raise ContractError(
            f"{status!r} is no status", field="status", fix=f"one of {', '.join(DeliveryStatus)}"
        ) from None


def _page(found: Sequence[Notification], size: int) -> tuple[tuple[Notification, ...], str | None]:
    page = tuple(found[:size])
    return page, encode_cursor(page[-1].notification_id) if len(found) > size else None
