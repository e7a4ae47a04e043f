"""Subscriptions: notify recipients when jobs complete, fail, become dead letters or are canceled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any
from uuid import UUID

from duly.core.errors import Conflict, ContractError, UnknownJob, UnknownSubscription
from duly.core.job import Actor
from duly.core.states import TERMINAL_EVENT
from duly.db.pool import Connection
from duly.features.arguments import check_org_active, org_uuid, required_uuid
from duly.features.audit.entries import audited_transaction, change_request
from duly.features.events.models import RelayedEvent
from duly.features.notifications.recipient import IN_APP, Recipient, check_endpoints, in_app_address
from duly.features.notifications.service import NewNotification, add_notifications
from duly.features.pagination import decode_cursor, read_org_page
from duly.features.subscriptions import store
from duly.features.subscriptions.models import OUTCOMES, Subscription, SubscriptionPage
from duly.features.subscriptions.store import delete_of_user
from duly.features.system_jobs import is_system_job
from duly.features.templates.models import DEFAULT_LOCALE, checked_locale
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid, checked_text

__all__ = ["Subscriptions", "delete_of_user", "is_of", "notify_subscribers", "unknown_subscription"]

MAX_PER_JOB = 100
MAX_WITHOUT_JOB = 100
"""Subscriptions of an org to job types, or to all its jobs."""
MAX_PER_CREATOR = 20
"""Of these, by the same actor: no actor can take all of them."""
_MAX_NOTIFICATIONS = 1_000
_TERMINAL_EVENTS = frozenset(TERMINAL_EVENT.values())


class Subscriptions:
    """The subscriptions of the orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def subscribe(
        self,
        org_id: UUID | str,
        to: Recipient | str,
        *,
        job_id: UUID | str | None = None,
        job_type: str | None = None,
        outcomes: Iterable[str] = OUTCOMES,
        locale: str = DEFAULT_LOCALE,
        actor: Actor,
    ) -> Subscription:
        """Notify a recipient when a job ends, or those of a type, or without either all that end from now on.

        If the job has ended already, notify at once. Idempotent.
        """
        channel, address = Recipient.parse(to)
        values = {
            "org_id": org_uuid(org_id),
            "job_id": as_uuid("job_id", job_id),
            "job_type": _checked_job_type(job_type),
            "outcomes": _checked_outcomes(outcomes),
            "channel": channel,
            "recipient": address,
            "locale": checked_locale(locale),
            "created_by": change_request(actor, None, optional=True).by,
        }
        if job_id is not None and job_type is not None:
            raise ContractError(
                "job_id and job_type exclude each other", field="job_type", fix="pass one of them"
            )
        created = await audited_transaction(self._app, lambda conn: _find_or_create(conn, values))
        if created.job_id is not None:
            # After the commit: the relay notifies of whatever ends the job from now on.
            await audited_transaction(self._app, lambda conn: _notify_if_ended(conn, created))
        return created

    async def list(
        self,
        org_id: UUID | str,
        *,
        job_id: UUID | str | None = None,
        of: Actor | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> SubscriptionPage:
        """Return the subscriptions of an org, newest first; with `of`, those by or for this actor."""
        org = org_uuid(org_id)
        values = {
            "org_id": org,
            "job_id": as_uuid("job_id", job_id),
            "created_by": None if of is None else change_request(of, None, optional=True).by,
            "user_id": None if of is None else in_app_address(of),
            "before": decode_cursor(after, UUID),
        }
        page = await read_org_page(
            self._app,
            org,
            lambda conn, count: store.list_before(conn, {**values, "limit": count}),
            lambda last: last.subscription_id,
            limit=limit,
        )
        return SubscriptionPage(*page)

    async def get(self, org_id: UUID | str, subscription_id: UUID | str) -> Subscription:
        """Return a subscription; an unknown id raises."""
        org, subscription = org_uuid(org_id), required_uuid("subscription_id", subscription_id)
        async with self._app.tenant_session(org) as conn:
            return _known(await store.read(conn, org, subscription))

    async def unsubscribe(self, org_id: UUID | str, subscription_id: UUID | str) -> Subscription:
        """Delete a subscription; an unknown id raises. Pending notifications are still sent."""
        org, subscription = org_uuid(org_id), required_uuid("subscription_id", subscription_id)

        async def delete(conn: Connection) -> Subscription:
            return _known(await store.delete(conn, org, subscription))

        return await audited_transaction(self._app, delete)


async def notify_subscribers(conn: Connection, events: Sequence[RelayedEvent]) -> None:
    """Write the notifications of the jobs that ended by these events, on the session of the relay."""
    ended = [event for event in events if event.event_type in _TERMINAL_EVENTS]
    if ended:
        jobs = [(event.org_id, event.job_id) for event in ended]
        xids = [str(event.commit_xid) for event in ended]
        await _notify(conn, await store.match(conn, jobs, xids))


async def _notify_if_ended(conn: Connection, subscription: Subscription) -> None:
    """Notify one subscriber if the job has ended: the relay may have passed its event already.

    If the relay notifies too, both write the same notification, and it is sent once.
    """
    assert subscription.job_id is not None
    jobs = [(subscription.org_id, subscription.job_id)]
    await _notify(conn, await store.match(conn, jobs, [None], only=subscription.subscription_id))


async def _notify(conn: Connection, matches: Sequence[Mapping[str, Any]]) -> None:
    for start in range(0, len(matches), _MAX_NOTIFICATIONS):
        batch = matches[start : start + _MAX_NOTIFICATIONS]
        await add_notifications(conn, [_notification(match) for match in batch])
    if matches:
        await store.mark_notified(conn, {(match["org_id"], match["subscription_id"]) for match in matches})


def _notification(match: Mapping[str, Any]) -> NewNotification:
    # No value of the payload changes later: the end of a job is notified once.
    finished_at = match["finished_at"].astimezone(UTC).isoformat(timespec="microseconds")
    payload = {
        **{name: match[name] for name in ("job_type", "subject_id", "status", "outcome", "error_code")},
        "job_id": str(match["job_id"]),
        "finished_at": finished_at.replace("+00:00", "Z"),
    }
    return NewNotification(
        org_id=match["org_id"],
        channel=match["channel"],
        recipient=match["recipient"],
        template_key=f"job.{match['ended']}",
        payload=payload,
        created_by=match["created_by"],
        locale=match["locale"],
        job_id=match["job_id"],
        bucket=str(match["subscription_id"]),
    )


def is_of(subscription: Subscription, actor: Actor) -> bool:
    """Return whether a subscription is by or for this actor."""
    is_recipient = subscription.channel == IN_APP and subscription.recipient == in_app_address(actor)
    return is_recipient or subscription.created_by == f"{actor.type}:{actor.id}"


def unknown_subscription() -> UnknownSubscription:
    """Return the error for a subscription that does not exist, or that the requester may not read."""
    return UnknownSubscription(
        "no subscription of this id in this org", field="subscription_id", fix="check the id and the org"
    )


async def _find_or_create(conn: Connection, values: dict[str, Any]) -> Subscription:
    org, job = values["org_id"], values["job_id"]
    await check_org_active(conn, org)
    if job is not None and await job_store.read_job(conn, org, job) is None:
        raise UnknownJob(f"no job {job} in this org", field="job_id", fix="check the id and the org")
    await check_endpoints(conn, org, [Recipient(values["channel"], values["recipient"])])
    existing = await store.find(conn, values)
    if existing is not None:
        return existing
    await _check_limits(conn, values)
    return await store.create(conn, values)


async def _check_limits(conn: Connection, values: dict[str, Any]) -> None:
    limit = MAX_WITHOUT_JOB if values["job_id"] is None else MAX_PER_JOB
    total, own = await store.count(conn, values)
    if total >= limit:
        raise Conflict(f"{limit} subscriptions exist already", field="to", fix="delete unused ones")
    if own >= MAX_PER_CREATOR:
        raise Conflict(
            f"you have created {MAX_PER_CREATOR} subscriptions already", field="to", fix="delete unused ones"
        )


def _checked_outcomes(outcomes: Iterable[str]) -> list[str]:
    values = {outcomes} if isinstance(outcomes, str) else set(outcomes)
    if not values or values - {*OUTCOMES}:
        unknown = ", ".join(sorted(values - {*OUTCOMES}))
        raise ContractError(
            f"unknown outcome: {unknown}" if values else "empty",
            field="outcomes",
            fix=f"use some of {', '.join(OUTCOMES)}",
        )
    return [outcome for outcome in OUTCOMES if outcome in values]


def _checked_job_type(job_type: str | None) -> str | None:
    checked = checked_text("job_type", job_type)
    if checked is not None and is_system_job(checked):
        raise ContractError(
            f"{checked} is a system job of Duly", field="job_type", fix="use a job type of your application"
        )
    return checked


def _known(subscription: Subscription | None) -> Subscription:
    if subscription is None:
        raise unknown_subscription()
    return subscription
