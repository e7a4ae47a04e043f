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
from duly.core.errors import DulyError
from duly.http import sse as streams

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
    """The page of a visitor whenever it has changed, until they leave or may no longer see it.

    Whoever may not see it at all gets no stream: the first look raises.
    """
    closing, beat = visit.service.closing, visit.service.options.stream_heartbeat.total_seconds()
    with visit.service.stream_of(visit.caller.org_id):
        look = _Look(boards, visit, show)
        text = await look.changed()
        yield streams.PREAMBLE
        spoken_at = time.monotonic()
        while not closing.is_set():
            if text is not None or time.monotonic() > spoken_at + beat:
                spoken_at = time.monotonic()
                yield streams.HEARTBEAT if text is None else _event(look.digest, text)
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), show.every)
            try:
                await visit.caller.reauthenticate()
                text = await look.changed()
            except DulyError:
                return  # they come again, and are told then what is wrong


def _event(digest: str, text: str) -> str:
    return streams.sse_event(digest, "page", json.dumps(text, ensure_ascii=False))


class _Look:
    """What a visitor has seen of a page."""

    def __init__(self, boards: Boards, visit: Visit, show: Show) -> None:
        self._boards, self._visit, self._show = boards, visit, show
        self._beat: str | None = None
        self._made_at = -_LONGEST
        self.digest = ""

    async def changed(self) -> str | None:
        """The page if it is another one than they have."""
        beat = await self._pulse()
        late = time.monotonic() > self._made_at + _LONGEST
        if beat is not None and beat == self._beat and not late:
            return None
        text = await self._page()
        self._beat, self._made_at = beat, time.monotonic()
        before, self.digest = self.digest, hashlib.sha256(text.encode()).hexdigest()[:16]
        return None if self.digest == before else text

    async def _page(self) -> str:
        async def make() -> str:
            page = await self._show.page(self._visit)
            return await self._visit.renderer.body(self._visit, page)

        # Who comes has a page that was made just now: an older one would take back what they did.
        younger_than = self._show.every * 0.9 if self.digest else 0.0
        return await self._boards.made(("page", *_same(self._visit)), younger_than, make)

    async def _pulse(self) -> str | None:
        pulse = self._show.pulse
        if pulse is None:
            return None

        async def ask() -> str:
            return repr(await pulse(self._visit))

        return await self._boards.made(("pulse", *_same(self._visit)), self._show.every * 0.9, ask)


def _same(visit: Visit) -> tuple[Hashable, ...]:
    """Whoever is the same in all of this sees the same."""
    who, request = visit.caller.principal, visit.request
    asked = tuple(sorted(visit.query.items()))
    session = request.headers.get("cookie", "")
    return who.org_id, who.actor, who.scopes, request.scope["path"], asked, visit.language, session
