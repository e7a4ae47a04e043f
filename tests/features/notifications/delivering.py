"""Deliver due notifications in tests: by the dispatcher and a worker."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import psycopg

from duly import Actor, Duly, RetryPolicy
from duly.features.notifications.channels import Message
from duly.features.notifications.delivery_job import declare
from duly.features.notifications.dispatcher import NotificationDispatcher
from tests.worker.working import RETRY_AT_ONCE, until, working

ANNA = Actor.user("anna")


def new_dispatcher(app: Duly, retry: RetryPolicy = RETRY_AT_ONCE) -> NotificationDispatcher:
    """Return a dispatcher, with another retry policy of the delivery jobs."""
    job = declare(app, app.notifications)
    job.policy = job.policy.model_copy(update={"retry": retry})
    return NotificationDispatcher(app)


async def dispatch(dispatcher: NotificationDispatcher) -> None:
    """Dispatch all due notifications."""
    while await dispatcher.once() == timedelta(0):
        pass


async def deliver(app: Duly, sql: psycopg.Connection[Any], retry: RetryPolicy = RETRY_AT_ONCE) -> None:
    """Dispatch all due notifications, and wait until none is pending."""
    await dispatch(new_dispatcher(app, retry))
    async with working(app):
        await until(
            sql, "select not exists (select from duly.notifications where delivery_status = 'pending')"
        )


def delivery_results(sql: psycopg.Connection[Any]) -> dict[str, tuple[str, int, str | None]]:
    """Return status, attempts and error of the notifications, by recipient."""
    query = "select recipient, delivery_status, attempt_count, last_error from duly.notifications"
    return {row[0]: (row[1], row[2], row[3]) for row in sql.execute(query).fetchall()}


class RecordingChannel:
    """A channel that records its messages, after raising these errors."""

    def __init__(self, *errors: Exception) -> None:
        self.messages: list[Message] = []
        self.errors = [*errors]
        self.attempts = 0

    async def send(self, message: Message) -> None:
        self.attempts += 1
        await asyncio.to_thread(lambda: None)
        if self.errors:
            raise self.errors.pop(0)
        self.messages.append(message)
