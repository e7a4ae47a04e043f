"""Carries one message to its endpoint: says what it says, signs it, and knows what the answer means."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime

from duly.features.webhooks.allowed_urls import Places
from duly.features.webhooks.backoff import Answer, broken_off, hopeless, judged, unsent
from duly.features.webhooks.delivery_store import Claimed, Told, Tried
from duly.features.webhooks.guarded_network import Guard
from duly.features.webhooks.message import CONTENT_TYPE, body, message_id
from duly.features.webhooks.resolver import owner
from duly.features.webhooks.sender import Sender, trusted
from duly.features.webhooks.signing import signed

log = logging.getLogger("duly.webhooks")


class Courier:
    """Tries to deliver messages, each once when it is asked to."""

    def __init__(self, sender: Sender, public_url: str) -> None:
        self._sender = sender
        self._public_url = public_url

    async def deliver(self, claimed: Claimed, told: Told | None) -> Tried:
        """Try it. Whatever goes wrong, the try has an end that can be noted."""
        at = datetime.now(UTC)
        if told is None:
            return hopeless(claimed, "the endpoint was removed", at)
        if claimed.data is None and told.event is None:
            return hopeless(claimed, "the event is not kept any more", at)
        try:
            return judged(claimed, await self._try(claimed, told), at)
        except Exception as error:
            log.exception("a message could not be sent")
            return broken_off(claimed, error, at)

    async def close(self) -> None:
        """Close all connections."""
        await self._sender.close()

    async def _try(self, claimed: Claimed, told: Told) -> Answer:
        if not told.secrets:
            return unsent("the endpoint has no secret to sign with")
        owner.set(claimed.key.org_id)
        content = body(claimed, told.event if claimed.data is None else None, self._public_url)
        headers = signed(message_id(claimed), int(time.time()), content, told.secrets)
        return await self._sender.send(told.url, {**headers, "content-type": CONTENT_TYPE}, content)


async def opened(places: Places, limit: float, connections: int, public_url: str) -> Courier:
    """A courier with connections of its own; whose certificates are believed is read on a thread."""
    trust = await asyncio.to_thread(trusted)
    sender = Sender(Guard(places), limit=limit, connections=connections, trust=trust)
    return Courier(sender, public_url)
