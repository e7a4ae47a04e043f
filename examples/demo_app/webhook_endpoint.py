"""A flaky webhook receiver."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from webhook_receiver import Receiver

from duly import Actor, Duly

from .customers import ORGS

OUTAGE_SECONDS, OUTAGE_INTERVAL = 25.0, 180.0
MAX_REMEMBERED = 5_000
DESCRIPTION = "the customer's own bookkeeping"


class FlakyReceiver(Receiver):
    """Refuses one message in twenty, and is down for a while every three minutes."""

    def __init__(self) -> None:
        super().__init__(lambda message: None)
        self._began = time.monotonic()

    def accept(self, body: bytes, headers: dict[str, str]) -> int:
        """Verify a message and return the HTTP status."""
        unavailable = (time.monotonic() - self._began) % OUTAGE_INTERVAL > OUTAGE_INTERVAL - OUTAGE_SECONDS
        if unavailable or random.random() < 0.05:
            return 503
        if len(self.processed) > MAX_REMEMBERED:
            self.processed.clear()
        return super().accept(body, headers)


@asynccontextmanager
async def receiving(app: Duly) -> AsyncIterator[None]:
    """Send webhooks of the largest customer to the receiver until the end of the block."""
    receiver, anna = FlakyReceiver(), Actor.user("anna")
    for old in (await app.webhooks.list(ORGS[0].org_id)).endpoints:
        if old.description == DESCRIPTION:  # from an earlier run on the same database
            await app.webhooks.remove(
                ORGS[0].org_id, old.endpoint_id, actor=anna, reason="receiver of an earlier run"
            )
    thread = threading.Thread(target=receiver.serve_forever, daemon=True)
    thread.start()
    created = await app.webhooks.create(
        ORGS[0].org_id,
        f"http://127.0.0.1:{receiver.server_port}/hooks/duly",
        ["job.completed", "job.failed"],
        job_types=["invoice.book", "invoice.send", "report.regional", "crm.sync"],
        description=DESCRIPTION,
        actor=anna,
        reason="updates for the ledger",
    )
    receiver.secret = created.secret
    try:
        yield
    finally:
        receiver.shutdown()
        receiver.server_close()
