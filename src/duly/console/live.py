"""Pages that stay true: made again every few seconds, once for all who see the same, sent if changed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import suppress
from typing import NamedTuple

from duly.console.routing import Show
from duly.console.visit import Visit
from duly.http import streams
from duly.model.errors import DulyError

Makes = Callable[[], Awaitable[str]]
_LONGEST = 30.0
"""The seconds after which a page is made again although its pulse did not change."""


class _Made(NamedTuple):
    at: float
    text: asyncio.Task[str]


class Boards:
    """Pages as they were made last, while somebody looks at them."""

    def __init__(self) -> None:
        self._made: dict[Hashable, _Made] = {}

    async def made(self, key: Hashable, younger_than: float, make: Makes) -> str:
        """The page, made within so many seconds: who asks while it is being made waits for the same."""
        now = time.monotonic()
        found = self._made.get(key)
        if found is None or now > found.at + younger_than:
            self._forget(now)
            found = self._made[key] = _Made(now, asyncio.ensure_future(_task(make)))
        try:
            return await asyncio.shield(found.text)
        except BaseException:
            if found.text.done() and self._made.get(key) is found:
                del self._made[key]
            raise

    def _forget(self, now: float) -> None:
        for key in [
            key for key, made in self._made.items() if now > made.at + 2 * _LONGEST and made.text.done()
        ]:
            del self._made[key]


async def _task(make: Makes) -> str:
    return await make()


async def told(boards: Boards, visit: Visit, show: Show) -> AsyncIterator[str]:
    """The page of a visitor whenever it has changed, until they leave or may no longer see it."""
    with visit.service.stream_of(visit.caller.org_id):
        yield streams.OPENING
        last, beat = "", None
        closing, heartbeat = visit.service.closing, visit.service.options.stream_heartbeat.total_seconds()
        quiet_since = made_at = time.monotonic()
        while not closing.is_set():
            try:
                await visit.caller.again()
                pulse = await _pulse(boards, visit, show)
                if pulse is None or pulse != beat or time.monotonic() > made_at + _LONGEST:
                    text = await _made(boards, visit, show)
                    beat, made_at = pulse, time.monotonic()
                    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                    if digest != last:
                        last, quiet_since = digest, time.monotonic()
                        yield streams.line(digest, "page", json.dumps(text, ensure_ascii=False))
            except DulyError:
                return  # they come again, and are told then what is wrong
            if time.monotonic() > quiet_since + heartbeat:
                quiet_since = time.monotonic()
                yield streams.SIGN_OF_LIFE
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), show.every)


async def _made(boards: Boards, visit: Visit, show: Show) -> str:
    async def make() -> str:
        return await visit.renderer.body(visit, await show.page(visit))

    return await boards.made(("page", *_same(visit)), show.every * 0.9, make)


async def _pulse(boards: Boards, visit: Visit, show: Show) -> str | None:
    pulse = show.pulse
    if pulse is None:
        return None

    async def ask() -> str:
        return repr(await pulse(visit))

    return await boards.made(("pulse", *_same(visit)), show.every * 0.9, ask)


def _same(visit: Visit) -> tuple[Hashable, ...]:
    """Whoever is the same in all of this sees the same."""
    who, request = visit.caller.principal, visit.request
    asked = tuple(sorted(visit.query.items()))
    session = request.headers.get("cookie", "")
    return who.org_id, who.actor, who.scopes, request.scope["path"], asked, visit.language, session
