"""The application, the same in the service and in every worker."""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from duly import Duly

from . import billing, integrations, reports

LEASE = timedelta(seconds=5)
"""Short, so that takeovers are quick to see; in production 30 seconds are better."""


def create_app(**settings: Any) -> Duly:
    """Create the application. Other settings come from the environment."""
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
    for module in (billing, reports, integrations):
        module.declare(app)
    return app
