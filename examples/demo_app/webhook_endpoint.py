"""A receiver of webhooks as they are: mostly there, sometimes not."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from webhook_receiver import Receiver

from duly import Actor, Duly

from .people import ORGS

_OUTAGE, _EVERY = 25.0, 180.0
_REMEMBERED = 5_000
_WHAT = "the customer's own bookkeeping"


class Moody(Receiver):
    """Refuses one message in twenty; every three minutes it is away for a while."""

    def __init__(self) -> None:
        super().__init__(lambda message: None)
        self._began = time.monotonic()

    def accept(self, body: bytes, headers: dict[str, str]) -> int:
        """The status to answer with."""
        away = (time.monotonic() - self._began) % _EVERY > _EVERY - _OUTAGE
        if away or random.random() < 0.05:
            return 503
        if len(self.seen) > _REMEMBERED:
            self.seen.clear()
        return super().accept(body, headers)


@asynccontextmanager
async def receiving(app: Duly) -> AsyncIterator[None]:
    """The largest customer is told of its invoices and reports, until the end of the block."""
    receiver, anna = Moody(), Actor.user("anna")
    for old in (await app.webhooks.list(ORGS[0].org_id)).endpoints:
        if old.description == _WHAT:  # of an earlier run, on the same database
            await app.webhooks.remove(ORGS[0].org_id, old.endpoint_id, actor=anna, reason="it is gone")
    thread = threading.Thread(target=receiver.serve_forever, daemon=True)
    thread.start()
    made = await app.webhooks.create(
        ORGS[0].org_id,
        f"http://127.0.0.1:{receiver.server_port}/hooks/duly",
        ["job.completed", "job.failed"],
        job_types=["invoice.book", "invoice.send", "report.regional", "crm.sync"],
        description=_WHAT,
        actor=anna,
        reason="our ledger wants to know",
    )
    receiver.secret = made.secret
    try:
        yield
    finally:
        receiver.shutdown()
        receiver.server_close()
