"""Helpers for tests of the deliverer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg

from duly import Duly
from duly.features.webhooks.deliverer import Deliverer
from tests.features.events.relaying import relay_all

Conn = psycopg.Connection[Any]
Make = Callable[..., Deliverer]


async def deliver(sql: Conn, app: Duly, chore: Deliverer, *, rounds: int = 100) -> None:
    """Relay all events, and deliver until nothing is due or in flight."""
    await relay_all(app, sql)
    for _ in range(rounds):
        if await chore.once() > timedelta(0):
            return


def make_due(sql: Conn) -> None:
    """Let all pauses of retries and circuit breakers end."""
    sql.execute(
        "update duly.webhook_deliveries set due_at = now() where status = 'pending' and held_by is null"
    )
    sql.execute("update duly.webhook_endpoints set shut_until = now() where shut_until is not null")
