"""The dispatcher: send due in-app notifications, create webhook deliveries, enqueue jobs for other channels.

It locks nothing while templates are rendered: the first writer wins, and fences refuse the others. An org
whose quota has no room for delivery jobs keeps its notifications pending and does not delay other orgs; nor
does an org whose templates are slow or fail.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import psycopg

from duly.core.errors import ContractError, LimitExceeded, StoreError
from duly.core.job import JobSpec, Origin
from duly.core.redaction import redact
from duly.db.database import retry_transaction
from duly.features.notifications import store
from duly.features.notifications.channels import channel_label
from duly.features.notifications.delivery_job import DELIVERER, JOB_TYPE
from duly.features.notifications.models import DeliveryStatus, DeliveryUpdate, DueNotification
from duly.features.notifications.preparation import mark_hidden, read_templates, render_messages
from duly.features.notifications.recipient import IN_APP, WEBHOOK
from duly.features.templates.models import MessageText
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.enqueue_options import new_ids
from duly.jobs.job import Job
from duly.observability import metrics

log = logging.getLogger("duly.notifications")
_INTERVAL = timedelta(seconds=1)
_ERROR_PAUSE_SECONDS, _LOST_CHECK_SECONDS = 30.0, 30.0
_MAX_LOST_PER_CHECK = 500
_RESULT_LABELS: dict[DeliveryStatus, metrics.NotificationResult] = {
    DeliveryStatus.SENT: "sent",
    DeliveryStatus.FAILED: "failed",
    DeliveryStatus.SUPPRESSED: "suppressed",
}


class NotificationDispatcher:
    """The maintenance task that dispatches due notifications."""

    name = "notifier"

    def __init__(self, app: App, *, public_url: str = "", max_per_org: int = 50) -> None:
        self._app = app
        self._public_url = public_url
        self._max_per_org = max_per_org
        self._served_orgs: set[UUID] = set()
        """Orgs with more due notifications that had their turn: the next one comes after all others."""
        self._paused_orgs: dict[UUID, float] = {}
        """Orgs whose delivery jobs were refused, and until when they are left out."""
        self._next_lost_check = 0.0

    async def once(self) -> timedelta:
        """Dispatch due notifications, bounded per org; return zero if there are more."""
        due = await self._read_due()
        await self._enqueue_jobs([one for one in due if _needs_job(one)])
        remaining = await self._dispatch([one for one in due if not _needs_job(one)])
        await self._fail_lost()
        counts = Counter(one.org_id for one in due)
        full = {org_id for org_id, count in counts.items() if count == self._max_per_org}
        more = bool(full or remaining or self._served_orgs)
        self._served_orgs = self._served_orgs | full if full else set()
        return timedelta(0) if more else _INTERVAL

    async def _read_due(self) -> list[DueNotification]:
        now = time.monotonic()
        self._paused_orgs = {org_id: until for org_id, until in self._paused_orgs.items() if until > now}
        excluded = {*self._served_orgs, *self._paused_orgs}
        async with (await self._app.resources()).database.engine() as conn:
            due = await store.list_due(conn, excluded_orgs=excluded, max_per_org=self._max_per_org)
        return await mark_hidden(self._app, due)

    async def _dispatch(self, due: Sequence[DueNotification]) -> int:
        """Dispatch notifications that need no job; return how many there was no time for.

        If they cannot be written together, they are written one by one, so that only the faulty one fails.
        """
        if not due:
            return 0
        try:
            return await self._dispatch_together(due)
        except Exception as error:
            if _is_database_down(error):
                raise
            if len(due) > 1:
                return sum([await self._dispatch([one]) for one in due])
            await self._fail(due[0], error)
            return 0

    async def _fail(self, one: DueNotification, error: Exception) -> None:
        log.warning("could not dispatch notification %s: %s", one.notification_id, redact(str(error)))
        message = f"could not be dispatched: {type(error).__name__}"
        update = DeliveryUpdate(DeliveryStatus.FAILED, error=message, attempts=1)
        try:
            async with (await self._app.resources()).database.engine() as conn:
                await store.settle(conn, {one.key: update})
        except psycopg.Error:
            self._paused_orgs[one.org_id] = time.monotonic() + _ERROR_PAUSE_SECONDS

    async def _dispatch_together(self, due: Sequence[DueNotification]) -> int:
        database = (await self._app.resources()).database
        to_render = _round_robin([one for one in due if not one.refusal])
        async with database.engine() as conn:
            templates = await read_templates(conn, to_render)
        messages = await render_messages(to_render, templates, self._public_url)
        updates = {
            one.key: _update(one, messages.get(one.notification_id))
            for one in due
            if one.refusal or one.notification_id in messages
        }
        to_endpoints = [
            (one, message)
            for one in to_render
            if one.channel == WEBHOOK
            and isinstance(message := messages.get(one.notification_id), MessageText)
        ]
        async with database.engine() as conn:
            delivering = await store.create_webhook_deliveries(conn, to_endpoints) if to_endpoints else set()
            settled = await store.settle(
                conn, {key: update for key, update in updates.items() if key[1] not in delivering}
            )
        for one in due:
            if one.notification_id in settled:
                metrics.count_notifications(
                    channel_label(one.channel), _RESULT_LABELS[updates[one.key].status]
                )
        return len(due) - len(updates)

    async def _enqueue_jobs(self, due: Sequence[DueNotification]) -> None:
        """Enqueue the delivery jobs, org by org."""
        ids_by_org: dict[UUID, list[UUID]] = {}
        for one in due:
            ids_by_org.setdefault(one.org_id, []).append(one.notification_id)
        for org_id, ids in ids_by_org.items():
            failure = await self._try_enqueue(org_id, ids)
            if isinstance(failure, LimitExceeded):
                # A quota without room for all jobs of a round may have room for one.
                failure = await self._try_enqueue(org_id, ids[:1]) or failure
            if failure is not None:
                log.warning("could not enqueue deliveries of org %s: %s", org_id, redact(str(failure)))
                self._paused_orgs[org_id] = time.monotonic() + _ERROR_PAUSE_SECONDS
        if ids_by_org:
            (await self._app.resources()).waker.wake()

    async def _try_enqueue(self, org_id: UUID, ids: Sequence[UUID]) -> Exception | None:
        """Enqueue the delivery jobs of an org; return the error, if any."""
        try:
            await retry_transaction(partial(self._enqueue, org_id, ids))
        except Exception as error:
            if _is_database_down(error):
                raise
            return error
        return None

    async def _enqueue(self, org_id: UUID, ids: Sequence[UUID]) -> None:
        job = self._app.registry.get(JOB_TYPE)
        async with (await self._app.resources()).database.engine() as conn:
            locked = await store.lock_due(conn, org_id, ids)
            if not locked:
                return
            specs = [_job_spec(org_id, id_, due_at, job) for id_, due_at in locked.items()]
            enqueued = await job_store.enqueue_jobs(conn, org_id, specs)
            jobs = {id_: one.job_id for id_, one in zip(locked, enqueued, strict=True)}
            await store.assign_jobs(conn, org_id, jobs)
        metrics.count_enqueued(job.name, job.policy.queue, sum(one.created for one in enqueued))

    async def _fail_lost(self) -> None:
        """Fail notifications that have lost their delivery job or endpoint, every half a minute."""
        if time.monotonic() < self._next_lost_check:
            return
        self._next_lost_check = time.monotonic() + _LOST_CHECK_SECONDS
        async with (await self._app.resources()).database.engine() as conn:
            count = await store.fail_lost(conn, limit=_MAX_LOST_PER_CHECK)
        if count:
            log.warning("failed %s notifications without a delivery job", count)


def _is_database_down(error: Exception) -> bool:
    """Return whether the error is about the connection, not about the notification."""
    return isinstance(error, StoreError) or (
        isinstance(error, psycopg.OperationalError) and not error.sqlstate
    )


def _round_robin(due: Sequence[DueNotification]) -> list[DueNotification]:
    """Return the first of each org, then the second of each: there may not be time for all."""
    turns: Counter[UUID] = Counter()
    ranked = []
    for one in due:
        turns[one.org_id] += 1
        ranked.append((turns[one.org_id], one))
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]


def _needs_job(one: DueNotification) -> bool:
    return one.refusal is None and one.channel not in (IN_APP, WEBHOOK)


def _update(one: DueNotification, message: MessageText | ContractError | None) -> DeliveryUpdate:
    """Return the result of a notification that needs no job; of a webhook, that for a missing endpoint."""
    if message is None:
        return DeliveryUpdate(DeliveryStatus.SUPPRESSED, error=one.refusal)
    if isinstance(message, ContractError):
        return DeliveryUpdate(DeliveryStatus.FAILED, error=str(message), attempts=1)
    if one.channel == WEBHOOK:
        return DeliveryUpdate(DeliveryStatus.FAILED, error="the endpoint was removed or disabled")
    return DeliveryUpdate(DeliveryStatus.SENT, *message, attempts=1)


def _job_spec(org_id: UUID, notification_id: UUID, due_at: datetime, job: Job[..., object]) -> JobSpec:
    key = f"notify:{notification_id}"
    [(job_id, result_id)] = new_ids(1)
    return JobSpec(
        job_id=job_id,
        result_id=result_id,
        job_type=job.name,
        origin=Origin(org_id, DELIVERER, key, key),
        policy=job.policy,
        payload=json.dumps({"notification_id": str(notification_id)}),
        # A resent notification has another due time, and so gets another job.
        idempotency_key=f"{key}:{due_at.timestamp():.6f}",
    )
