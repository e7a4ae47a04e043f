"""The job type `duly.notify`: one notification, told on its channel.

What it tells is told at least once: should the worker die after the channel took it and before that is
written down, the next attempt sends it again, under the same id.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from duly.core.errors import ContractError, LeaseLost
from duly.core.job import Actor
from duly.core.outcome import Fail, Snooze
from duly.core.policy import Category, RetryPolicy, parse_stored_policy
from duly.core.redaction import redact
from duly.features.notifications import store
from duly.features.notifications.channels import Bounced, Message, known
from duly.features.notifications.recipients import Recipient
from duly.features.notifications.rendering import own_templates, words_of
from duly.features.notifications.service import Notifications
from duly.features.notifications.store import DeliveryStatus, Due, Settled
from duly.features.notifications.visibility import veiled
from duly.features.templates.lazy import Words
from duly.jobs.application import App
from duly.jobs.job import Job
from duly.observability import metrics
from duly.worker.context.context import Context

JOB_TYPE = "duly.notify"
DELIVERER = Actor.system("notifier")
_TIMEOUT = timedelta(minutes=5)
_SECOND, _MINUTE, _HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
_DELAYS = (
    *(5 * _SECOND, _MINUTE, 5 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 2 * _HOUR, 4 * _HOUR, 8 * _HOUR, 12 * _HOUR),
)
RETRY = RetryPolicy(max_attempts=len(_DELAYS) + 1, delays=_DELAYS)
"""For more than a day: so long a mail server may be away."""
_LONGEST_ERROR = 500
Result = Literal["sent", "retried", "failed", "suppressed"]


def declare(app: App, notifications: Notifications) -> Job[..., Any]:
    """Add the job type to an application, or find it there."""
    if JOB_TYPE in app.registry:
        return app.registry.get(JOB_TYPE)

    @app.job(JOB_TYPE, category=Category.NOTIFICATION, timeout=_TIMEOUT, retry=RETRY)
    async def notify(ctx: Context, notification_id: UUID) -> str:
        return await _Delivery(ctx, app, notifications).deliver(notification_id)

    return notify


class _Delivery:
    """One attempt to tell somebody something."""

    def __init__(self, ctx: Context, app: App, notifications: Notifications) -> None:
        self._ctx = ctx
        self._app = app
        self._notifications = notifications

    async def deliver(self, notification_id: UUID) -> str:
        """What became of it."""
        async with (await self._app.resources()).database.engine() as conn:
            due = await store.open_one(conn, self._ctx.job.org_id, notification_id)
            own = {} if due is None else await own_templates(conn, [due])
        if due is None or due.delivery_job_id != self._ctx.job.job_id:
            return "not pending"
        [due] = await veiled(self._app, [due])
        if due.refusal is not None:
            await self._settle(due, "suppressed", Settled(DeliveryStatus.SUPPRESSED, error=due.refusal))
            return "suppressed"
        said = (await words_of([due], own, self._notifications.public_url))[notification_id]
        if isinstance(said, ContractError):
            raise await self._failed(due, Fail(str(said), code="notification.template"))
        await self._send(due, said)
        await self._settle(due, "sent", Settled(DeliveryStatus.SENT, *said, tries=1))
        return "sent"

    async def _send(self, due: Due, said: Words) -> None:
        try:
            await self._notifications.channels.send(due.channel, _message(due, said))
        except (LeaseLost, Snooze):
            raise
        except Fail as error:
            raise await self._failed(due, error) from error
        except Exception as error:
            if self._ctx.attempt >= parse_stored_policy(self._ctx.job.policy).retry.max_attempts:
                # Not dead: a letter for every message that could not be sent would bury the others.
                raise await self._failed(due, Fail(_text(error), code="notification.undelivered")) from error
            await self._settle(due, "retried", Settled(DeliveryStatus.PENDING, error=_text(error), tries=1))
            raise

    async def _failed(self, due: Due, error: Fail) -> Fail:
        """It will never be told; nor will anything else, if there is no such recipient."""
        await self._settle(due, "failed", Settled(DeliveryStatus.FAILED, error=_text(error), tries=1))
        if isinstance(error, Bounced):
            await self._notifications.suppressions.add(
                due.org_id,
                Recipient(due.channel, due.recipient),
                actor=DELIVERER,
                reason=f"it bounced: {_text(error)}",
            )
        return error

    async def _settle(self, due: Due, result: Result, ended: Settled) -> None:
        async with (await self._app.resources()).database.engine() as conn:
            if await store.settle(conn, {due.key: ended}, job_id=self._ctx.job.job_id):
                metrics.notified(known(due.channel), result)


def _message(due: Due, said: Words) -> Message:
    return Message(
        org_id=due.org_id,
        notification_id=due.notification_id,
        recipient=due.recipient,
        subject=said.subject,
        body=said.body,
        locale=due.locale,
        template_key=due.template_key,
        payload=due.payload,
        job_id=due.job_id,
    )


def _text(error: BaseException) -> str:
    return redact(str(error) or type(error).__name__, _LONGEST_ERROR)
