"""Ways to reach people. Mail comes with Duly; others are added: `add_channel("sms", mine)`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol
from uuid import UUID

from duly.core.errors import ConfigurationError
from duly.core.outcome import Fail, Retry
from duly.features.notifications.recipients import EMAIL, IN_APP, WEBHOOK, checked_channel

_AT_ONCE = 16
_BUILT_IN = frozenset({EMAIL, IN_APP, WEBHOOK})
_ADDED: set[str] = set()


def known(name: str) -> str:
    """The name of a channel as metrics may have it: orgs may name any, and those would never end."""
    return name if name in _BUILT_IN or name in _ADDED else "other"


@dataclass(frozen=True, slots=True)
class Message:
    """What a channel is to send."""

    org_id: UUID
    notification_id: UUID
    """The same at each try: for whoever can tell doubles by it."""
    recipient: str
    subject: str
    body: str
    locale: str
    template_key: str
    payload: dict[str, Any]
    job_id: UUID | None = None


class Channel(Protocol):
    """One way to reach people, by `def send` on a thread or by `async def send`.

    It returns when the message is out of its hands. `duly.Fail` means that no other try will help, `Bounced`
    that nothing will ever reach this recipient; whatever else it raises, it is asked again later, with
    `duly.Retry` not before a given time.
    """

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send it, once if you can."""


class Bounced(Fail):
    """There is no such recipient: nothing is sent to them any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code="notification.bounced")


class Channels:
    """The channels that this process knows, by name."""

    def __init__(self) -> None:
        self._known: dict[str, Channel] = {}

    def add(self, name: str, channel: Channel) -> None:
        """Reach people in this way, too; or in this way instead of the one that had the name."""
        if checked_channel(name) in (IN_APP, WEBHOOK):
            raise ConfigurationError(
                f"{name} is Duly's own", field="channel", fix="choose another name for yours"
            )
        if isinstance(channel, type) or not callable(getattr(channel, "send", None)):
            raise ConfigurationError(
                "it cannot send", field="channel", fix="pass an object with `def send(self, message)`"
            )
        self._known[name] = channel
        _ADDED.add(name)

    async def send(self, name: str, message: Message) -> None:
        """Send it on the channel of that name; raises as that one does."""
        channel = self._known.get(name)
        if channel is None:
            fix = "set DULY_SMTP_URL" if name == EMAIL else "add it where workers run"
            raise Retry(f"this worker knows no channel {name!r}: {fix}", code="notification.channel")
        if inspect.iscoroutinefunction(channel.send):
            await channel.send(message)
            return
        # What it logs is the job's.
        send = partial(copy_context().run, channel.send, message)
        sent = await asyncio.get_running_loop().run_in_executor(self._threads, send)
        if inspect.isawaitable(sent):
            await sent

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Of its own: a mail server that answers slowly keeps nobody else waiting."""
        return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="duly-notify")
