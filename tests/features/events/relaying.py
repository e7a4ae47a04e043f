"""Relaying in tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from duly import Duly
from duly.features.events.relay import Relay
from tests.db.open_transactions import wait_for_transactions


async def relay_all(app: Duly, sql: psycopg.Connection[Any], relay: Relay | None = None) -> None:
    """Relay every committed event, once no open transaction holds the relay up."""
    wait_for_transactions(sql)
    relay = relay or Relay(app)
    while await relay.once() == timedelta(0):
        pass
