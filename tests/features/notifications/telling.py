"""What is due is told, by the chore and by a worker, for as long as a test needs it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import psycopg

from duly import Actor, Duly, RetryPolicy
from duly.features.notifications.channels import Message
from duly.features.notifications.delivery_job import declare
from duly.features.notifications.dispatcher import Notifier
from tests.worker.working import AT_ONCE, until, working

ANNA = Actor.user("anna")


def ready(app: Duly, retry: RetryPolicy = AT_ONCE) -> Notifier:
    """The chore, and its job type with another patience."""
    job = declare(app, app.notifications)
    job.policy = job.policy.model_copy(update={"retry": retry})
    return Notifier(app)


async def take(notifier: Notifier) -> None:
    """Everything that is due is taken."""
    while await notifier.once() == timedelta(0):
        pass


async def tell(app: Duly, sql: psycopg.Connection[Any], retry: RetryPolicy = AT_ONCE) -> None:
    """Everything that is due is told, or is not."""
    await take(ready(app, retry))
    async with working(app):
        await until(
            sql, "select not exists (select from duly.notifications where delivery_status = 'pending')"
        )


def outcomes(sql: psycopg.Connection[Any]) -> dict[str, tuple[str, int, str | None]]:
    """What became of the notifications, by recipient."""
    asked = "select recipient, delivery_status, attempt_count, last_error from duly.notifications"
    return {row[0]: (row[1], row[2], row[3]) for row in sql.execute(asked).fetchall()}


class Kept:
    """A channel that keeps what it gets, after so many failures."""

    def __init__(self, *troubles: Exception) -> None:
        self.messages: list[Message] = []
        self.troubles = [*troubles]
        self.tries = 0

    async def send(self, message: Message) -> None:
        self.tries += 1
        await asyncio.to_thread(lambda: None)
        if self.troubles:
            raise self.troubles.pop(0)
        self.messages.append(message)
