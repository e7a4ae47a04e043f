"""The application, the same in the service and in every worker."""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from duly import Duly

from . import billing, links, reports

LEASE = timedelta(seconds=5)
"""Short, so that nobody waits long for a takeover; on a machine of one's own 30 seconds are better."""


def make(**settings: Any) -> Duly:
    """The application. What is not said here comes from the environment."""
    app = Duly(
        **{
            "worker_lease": LEASE,
            "worker_heartbeat": LEASE / 5,
            "worker_slots": 24,
            "worker_drain": timedelta(seconds=1),
            "pool_max": 6,
            "webhook_allow": ("127.0.0.1",),
            "alert_recipients": ("in_app:ops",),
            **settings,
        }
    )
    app.include_analyze()
    if find_spec("xberg"):  # with duly[documents]
        app.include_documents()
    for room in (billing, reports, links):
        room.declare(app)
    return app
