"""Live updates: render a page every few seconds, once for identical viewers, and send it if it changed."""

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
from duly.http import sse

Render = Callable[[], Awaitable[str]]
MAX_AGE = 30.0
"""Seconds after which a page is rendered again although its pulse did not change."""


class _CacheEntry(NamedTuple):
    started_at: float
    text: asyncio.Task[str]


class RenderCache:
    """Recently rendered pages, shared by their viewers; concurrent viewers await one rendering."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, _CacheEntry] = {}

    async def get(self, key: Hashable, max_age: float, render: Render) -> str:
        """Return the text if it was rendered within `max_age` seconds, else render it."""
        now = time.monotonic()
        entry = self._entries.get(key)
        if entry is None or now > entry.started_at + max_age:
            self._evict(now)
            entry = self._entries[key] = _CacheEntry(now, asyncio.ensure_future(_call(render)))
        try:
            return await asyncio.shield(entry.text)
        except BaseException:
            if entry.text.done() and self._entries.get(key) is entry:
                del self._entries[key]
            raise

    def _evict(self, now: float) -> None:
        expired = [
            key
            for key, entry in self._entries.items()
            if now > entry.started_at + 2 * MAX_AGE and entry.text.done()
        ]
        for key in expired:
            del self._entries[key]


async def _call(render: Render) -> str:
    return await render()


async def page_events(cache: RenderCache, visit: Visit, show: Show) -> AsyncIterator[str]:
    """Yield the page as a server-sent event whenever it changes, until access ends or the service stops.

    The first rendering raises if access is denied: such a request gets a problem and no stream.
    """
    closing, heartbeat = visit.service.closing, visit.service.options.stream_heartbeat.total_seconds()
    with visit.service.stream_of(visit.requester.org_id):
        live = _LivePage(cache, visit, show)
        text = await live.changed_text()
        yield sse.PREAMBLE
        sent_at = time.monotonic()
        while not closing.is_set():
            if text is not None or time.monotonic() > sent_at + heartbeat:
                sent_at = time.monotonic()
                yield sse.HEARTBEAT if text is None else _event(live.digest, text)
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), show.every)
            try:
                await visit.requester.reauthenticate()
                text = await live.changed_text()
            except DulyError:
                return  # the browser reconnects, and the new request gets the problem


def _event(digest: str, text: str) -> str:
    return sse.sse_event(digest, "page", json.dumps(text, ensure_ascii=False))


class _LivePage:
    """One viewer's page: the version that was sent last."""

    def __init__(self, cache: RenderCache, visit: Visit, show: Show) -> None:
        self._cache, self._visit, self._show = cache, visit, show
        self._key = _view_key(visit)
        self._pulse: str | None = None
        self._rendered_at = -MAX_AGE
        self.digest = ""

    async def changed_text(self) -> str | None:
        """Return the page if it differs from the version that was sent last."""
        pulse = await self._read_pulse()
        expired = time.monotonic() > self._rendered_at + MAX_AGE
        if pulse is not None and pulse == self._pulse and not expired:
            return None
        text = await self._render()
        self._pulse, self._rendered_at = pulse, time.monotonic()
        previous, self.digest = self.digest, hashlib.sha256(text.encode()).hexdigest()[:16]
        return None if self.digest == previous else text

    async def _render(self) -> str:
        async def render() -> str:
            page = await self._show.page(self._visit)
            return await self._visit.renderer.body(self._visit, page)

        # The first version is always new: a cached one could precede a change that this viewer just made.
        max_age = self._show.every * 0.9 if self.digest else 0.0
        return await self._cache.get(("page", *self._key), max_age, render)

    async def _read_pulse(self) -> str | None:
        pulse = self._show.pulse
        if pulse is None:
            return None

        async def read() -> str:
            return repr(await pulse(self._visit))

        return await self._cache.get(("pulse", *self._key), self._show.every * 0.9, read)


def _view_key(visit: Visit) -> tuple[Hashable, ...]:
    """Return everything that a page depends on: requests with equal keys get the same page."""
    principal, request = visit.requester.principal, visit.request
    query = tuple(sorted(visit.query.items()))
    session = request.headers.get("cookie", "")
    path = request.scope["path"]
    return principal.org_id, principal.actor, principal.scopes, path, query, visit.language, session
