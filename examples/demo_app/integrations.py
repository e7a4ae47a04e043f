"""Jobs that depend on other systems, which refuse, break off or are not ready; and scheduled jobs."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

from duly import Context, Duly, RetryPolicy, Snooze

from .billing import SOON

TWO_ATTEMPTS = RetryPolicy(max_attempts=2, base=timedelta(seconds=1), cap=timedelta(seconds=2))
SYSTEMS = ("hubshop", "ledgerly", "postbox", "papyrus")
"""Other systems; each has another fault."""


def declare(app: Duly) -> None:
    """Declare the job types that depend on other systems."""

    @app.job("crm.sync", retry=TWO_ATTEMPTS, dependency="crm", never_retry=[LookupError])
    async def sync(ctx: Context, system: str, contact: int, fields: list[str]) -> dict[str, int]:
        """Synchronize a contact; some systems always fail, each in another way."""
        ctx.log.info("%d fields for contact %d", len(fields), contact)
        await asyncio.sleep(random.uniform(0.1, 0.5))
        if system == "ledgerly":
            raise ConnectionRefusedError("ledgerly:443 refuses connections")
        if system == "postbox":
            raise ValueError(f"contact {contact}: postal code is missing")
        if system == "papyrus":
            return _from_papyrus({"name": "Ada"}, contact)
        return {"contact": contact, "fields": len(fields)}

    @app.job("shipment.track", retry=TWO_ATTEMPTS, timeout=timedelta(seconds=2))
    async def track(ctx: Context, parcel: str) -> str:
        """Track a parcel; sometimes the carrier does not answer at all."""
        if random.random() < 0.1:
            ctx.log.warning("the carrier does not answer")
            await asyncio.sleep(30)
        await asyncio.sleep(random.uniform(0.1, 0.3))
        return random.choice(["in transit", "delivered", "at the depot"])

    _declare_scheduled(app)


def _declare_scheduled(app: Duly) -> None:
    @app.job("backup.verify", category="maintenance", retry=SOON)
    async def verify(ctx: Context, name: str) -> str:
        if ctx.job.returned < 2:
            raise Snooze(random.uniform(2, 4), "the backup is still being written")
        return f"{name} can be restored"

    @app.job("stock.check", category="maintenance", retry=SOON)
    async def check(ctx: Context, warehouse: str) -> dict[str, int]:
        await asyncio.sleep(random.uniform(0.1, 0.4))
        low = random.randint(0, 5)
        ctx.count(processed=320, warnings=low)
        return {"checked": 320, "low": low}

    @app.job("digest.send", category="notification", retry=SOON)
    async def digest(audience: str) -> str:
        await asyncio.sleep(0.2)
        return f"sent to {audience}"


def _from_papyrus(answer: dict[str, str], contact: int) -> dict[str, int]:
    return {"contact": contact, "fields": len(answer["customer_no"])}
