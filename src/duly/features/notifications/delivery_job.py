"""The job type `duly.notify`, which delivers one notification on its channel.

Delivery is at least once: if the worker dies after the channel accepted the message and before that is
committed, the next attempt sends it again, under the same id.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from duly.core.errors import ContractError, LeaseLost
from duly.core.job import Actor
from duly.core.outcome import Fail, Snooze
from duly.core.policy import Category, RetryPolicy, parse_stored_policy
from duly.core.redaction import redact, truncate
from duly.features.notifications import store
from duly.features.notifications.channels import Bounced, Message, channel_label
from duly.features.notifications.models import DeliveryStatus, DeliveryUpdate, DueNotification
from duly.features.notifications.preparation import mark_hidden, read_templates, render_messages
from duly.features.notifications.recipient import Recipient
from duly.features.notifications.service import Notifications
from duly.features.templates.models import MessageText
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
"""For more than a day, so that a mail server may be down that long."""
_MAX_ERROR_LENGTH = 500
_MESSAGE_FIELDS = {"org_id", "notification_id", "recipient", "locale", "template_key", "payload", "job_id"}


def declare(app: App, notifications: Notifications) -> Job[..., Any]:
    """Declare the job type, unless the application has it already."""
    if JOB_TYPE in app.registry:
        return app.registry.get(JOB_TYPE)

    @app.job(JOB_TYPE, category=Category.NOTIFICATION, timeout=_TIMEOUT, retry=RETRY)
    async def notify(ctx: Context, notification_id: UUID) -> str:
        return await _DeliveryAttempt(ctx, app, notifications).deliver(notification_id)

    return notify


class _DeliveryAttempt:
    """One attempt to deliver a notification."""

    def __init__(self, ctx: Context, app: App, notifications: Notifications) -> None:
        self._ctx = ctx
        self._app = app
        self._notifications = notifications

    async def deliver(self, notification_id: UUID) -> str:
        """Deliver the notification; return what happened to it."""
        async with (await self._app.resources()).database.engine() as conn:
            due = await store.read_pending(conn, self._ctx.job.org_id, notification_id)
            templates = {} if due is None else await read_templates(conn, [due])
        if due is None or due.delivery_job_id != self._ctx.job.job_id:
            return "not pending"
        [due] = await mark_hidden(self._app, [due])
        if due.refusal is not None:
            update = DeliveryUpdate(DeliveryStatus.SUPPRESSED, error=due.refusal)
            await self._settle(due, "suppressed", update)
            return "suppressed"
        messages = await render_messages([due], templates, self._notifications.public_url)
        message = messages[notification_id]
        if isinstance(message, ContractError):
            raise await self._fail(due, Fail(str(message), code="notification.template"))
        await self._send(due, message)
        await self._settle(due, "sent", DeliveryUpdate(DeliveryStatus.SENT, *message, attempts=1))
        return "sent"

    async def _send(self, due: DueNotification, message: MessageText) -> None:
        try:
            fields = due.model_dump(include=_MESSAGE_FIELDS)
            await self._notifications.channels.send(due.channel, Message(**fields, **message._asdict()))
        except (LeaseLost, Snooze):
            raise
        except Fail as error:
            raise await self._fail(due, error) from error
        except Exception as error:
            text = _error_text(error)
            if self._ctx.attempt >= parse_stored_policy(self._ctx.job.policy).retry.max_attempts:
                # Fail instead of a dead letter: one for every undelivered message would bury the others.
                raise await self._fail(due, Fail(text, code="notification.undelivered")) from error
            await self._settle(due, "retried", DeliveryUpdate(DeliveryStatus.PENDING, error=text, attempts=1))
            raise

    async def _fail(self, due: DueNotification, error: Fail) -> Fail:
        """Settle the notification as failed, and suppress a recipient that bounced; return the error."""
        text = _error_text(error)
        await self._settle(due, "failed", DeliveryUpdate(DeliveryStatus.FAILED, error=text, attempts=1))
        if isinstance(error, Bounced):
            recipient = Recipient(due.channel, due.recipient)
            await self._notifications.suppressions.add(
                due.org_id, recipient, actor=DELIVERER, reason=truncate(f"bounced: {text}", _MAX_ERROR_LENGTH)
            )
        return error

    async def _settle(
        self, due: DueNotification, result: metrics.NotificationResult, update: DeliveryUpdate
    ) -> None:
        async with (await self._app.resources()).database.engine() as conn:
            if await store.settle(conn, {due.key: update}, job_id=self._ctx.job.job_id):
                metrics.count_notifications(channel_label(due.channel), result)


def _error_text(error: BaseException) -> str:
    return redact(str(error) or type(error).__name__, _MAX_ERROR_LENGTH)
