"""Channels that deliver notifications. Mail is built in; add others by `add_channel("sms", channel)`."""

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
from duly.features.notifications.recipient import EMAIL, IN_APP, WEBHOOK, checked_channel

_MAX_THREADS = 16
_BUILTIN_CHANNELS = frozenset({EMAIL, IN_APP, WEBHOOK})
_added_channels: set[str] = set()


def channel_label(name: str) -> str:
    """Return the metric label of a channel: orgs may invent names, which must not become time series."""
    return name if name in _BUILTIN_CHANNELS or name in _added_channels else "other"


@dataclass(frozen=True, slots=True)
class Message:
    """A rendered notification for a channel."""

    org_id: UUID
    notification_id: UUID
    """The same for each attempt: the key for deduplication."""
    recipient: str
    subject: str
    body: str
    locale: str
    template_key: str
    payload: dict[str, Any]
    job_id: UUID | None = None


class Channel(Protocol):
    """A way to reach people, by `def send`, which runs on a thread, or by `async def send`.

    `send` returns once the message is handed over. Raise `duly.Fail` if no retry can help, `Bounced` if the
    recipient does not exist; any other error is retried, `duly.Retry` after a given time.
    """

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message, once if possible."""


class Bounced(Fail):
    """The recipient does not exist: it is suppressed from now on."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code="notification.bounced")


class Channels:
    """The channels of this process, by name."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}

    def add(self, name: str, channel: Channel) -> None:
        """Add a channel, or replace the one of that name."""
        if checked_channel(name) in (IN_APP, WEBHOOK):
            raise ConfigurationError(
                f"{name} is a built-in channel", field="channel", fix="choose another name"
            )
        if isinstance(channel, type) or not callable(getattr(channel, "send", None)):
            raise ConfigurationError(
                "has no method send", field="channel", fix="pass an object with `def send(self, message)`"
            )
        self._channels[name] = channel
        _added_channels.add(name)

    async def send(self, name: str, message: Message) -> None:
        """Send a message on the channel of that name; its errors are raised."""
        channel = self._channels.get(name)
        if channel is None:
            fix = "set DULY_SMTP_URL" if name == EMAIL else "add it to the application of the workers"
            raise Retry(f"this worker has no channel {name!r}: {fix}", code="notification.channel")
        if inspect.iscoroutinefunction(channel.send):
            await channel.send(message)
            return
        # With the context: log records of the channel have the fields of the job.
        send = partial(copy_context().run, channel.send, message)
        sent = await asyncio.get_running_loop().run_in_executor(self._threads, send)
        if inspect.isawaitable(sent):
            await sent

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Threads of their own: a slow mail server must not delay other work."""
        return ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="duly-notify")
