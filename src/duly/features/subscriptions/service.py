"""Subscriptions: tell me when it is completed, failed, dead or canceled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.core.errors import Conflict, ContractError, UnknownJob, UnknownSubscription
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, org_uuid
from duly.features.audit.entries import audited_transaction, change_request
from duly.features.notifications.recipients import (
    FALLBACK,
    IN_APP,
    Recipient,
    check_endpoints,
    checked_id,
    checked_locale,
    own_address,
)
from duly.features.pagination import decode_cursor, page_size, split_page
from duly.features.schedules import store as schedules
from duly.features.subscriptions import store as subscriptions
from duly.features.subscriptions.store import OUTCOMES, Subscription
from duly.features.system_jobs import is_system_job
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid, checked_text

__all__ = ["Subscription", "SubscriptionPage", "Subscriptions"]

MOST_OF_A_JOB, MOST_WIDE = 100, 100
"""Subscriptions of one job; and of an org's job types, or of all its jobs."""
MOST_OF_ONE = 20
"""How many of those may be made by the same actor: nobody takes all of them."""


@dataclass(frozen=True, slots=True)
class SubscriptionPage:
    """Some subscriptions; `after` asks for those that follow, and is None at the end."""

    subscriptions: tuple[Subscription, ...]
    after: str | None


class Subscriptions:
    """Who wants to be told how the jobs of their orgs end."""

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
        locale: str = FALLBACK,
        actor: Actor,
    ) -> Subscription:
        """Have somebody told how a job ends, or those of a type, or without either all that end from now on.

        Of a job that has ended they are told at once. Asked again, it changes nothing.
        """
        channel, address = Recipient.read(to)
        wanted = {
            "org_id": org_uuid(org_id),
            "job_id": as_uuid("job_id", job_id),
            "job_type": _checked_type(job_type),
            "outcomes": _checked_outcomes(outcomes),
            "channel": channel,
            "recipient": address,
            "locale": checked_locale(locale),
            "created_by": change_request(actor, None, optional=True).by,
        }
        if job_id is not None and job_type is not None:
            raise ContractError("a job, or a type of jobs", field="job_type", fix="name one of them")
        made = await audited_transaction(self._app, lambda conn: _made(conn, wanted))
        if made.job_id is not None:
            # After the commit: whatever ends the job from now on is told of by the relay.
            await self._tell_now(made, made.job_id)
        return made

    async def list(
        self,
        org_id: UUID | str,
        *,
        job_id: UUID | str | None = None,
        of: Actor | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> SubscriptionPage:
        """The subscriptions of an org, the newest first; or those that somebody made, or that tell them."""
        whose, size = org_uuid(org_id), page_size(limit)
        values = {
            "org_id": whose,
            "job_id": as_uuid("job_id", job_id),
            "created_by": None if of is None else change_request(of, None, optional=True).by,
            "user_id": None if of is None else own_address(of),
            "before": decode_cursor(after, UUID),
            "limit": size + 1,
        }
        async with self._app.tenant_session(whose) as conn:
            found = await subscriptions.list_before(conn, values)
            if not found:
                await check_org_exists(conn, whose)
        return SubscriptionPage(*split_page(found, size, lambda last: last.subscription_id))

    async def get(self, org_id: UUID | str, subscription_id: UUID | str) -> Subscription:
        """One subscription; an unknown id raises."""
        whose, which = org_uuid(org_id), checked_id("subscription_id", subscription_id)
        async with self._app.tenant_session(whose) as conn:
            return _found(await subscriptions.read(conn, whose, which))

    async def unsubscribe(self, org_id: UUID | str, subscription_id: UUID | str) -> Subscription:
        """End a subscription; an unknown id raises. What is to be told already is told."""
        whose, which = org_uuid(org_id), checked_id("subscription_id", subscription_id)

        async def change(conn: Connection) -> Subscription:
            return _found(await subscriptions.remove(conn, whose, which))

        return await audited_transaction(self._app, change)

    async def _tell_now(self, made: Subscription, job_id: UUID) -> None:
        await audited_transaction(
            self._app,
            lambda conn: subscriptions.tell_now(conn, made.org_id, job_id, made.subscription_id),
        )


def is_of(subscription: Subscription, actor: Actor) -> bool:
    """Whether it is somebody's own: they made it, or it tells them."""
    mine = subscription.channel == IN_APP and subscription.recipient == own_address(actor)
    return mine or subscription.created_by == f"{actor.type}:{actor.id}"


async def _made(conn: Connection, wanted: dict[str, Any]) -> Subscription:
    await schedules.open_org(conn, wanted["org_id"])
    if (
        wanted["job_id"] is not None
        and await job_store.read_job(conn, wanted["org_id"], wanted["job_id"]) is None
    ):
        raise UnknownJob(
            f"no job {wanted['job_id']} in this org", field="job_id", fix="check the id and the org"
        )
    await check_endpoints(conn, wanted["org_id"], [Recipient(wanted["channel"], wanted["recipient"])])
    there = await subscriptions.find(conn, wanted)
    if there is not None:
        return there
    await _check_room(conn, wanted)
    return await subscriptions.create(conn, wanted)


async def _check_room(conn: Connection, wanted: dict[str, Any]) -> None:
    most = MOST_WIDE if wanted["job_id"] is None else MOST_OF_A_JOB
    all_of_them, own = await subscriptions.count(conn, wanted)
    if all_of_them >= most:
        raise Conflict(f"there are {most} already", field="to", fix="end those that nobody needs")
    if own >= MOST_OF_ONE:
        raise Conflict(f"you have made {MOST_OF_ONE} already", field="to", fix="end some of them")


def _checked_outcomes(said: Iterable[str]) -> list[str]:
    given = {said} if isinstance(said, str) else set(said)
    if not given or given - {*OUTCOMES}:
        raise ContractError("no such outcome", field="outcomes", fix=f"some of {', '.join(OUTCOMES)}")
    return [outcome for outcome in OUTCOMES if outcome in given]


def _checked_type(job_type: str | None) -> str | None:
    found = checked_text("job_type", job_type)
    if found is not None and is_system_job(found):
        raise ContractError("of Duly's own jobs nobody is told", field="job_type", fix="name one of yours")
    return found


def _found(subscription: Subscription | None) -> Subscription:
    if subscription is None:
        raise UnknownSubscription(
            "no subscription of this id in this org",
            field="subscription_id",
            fix="check the id and the org",
        )
    return subscription
