"""A page is rendered once for all identical viewers, and not more often than it changes."""

from __future__ import annotations

import asyncio

import pytest

from duly.console.live import RenderCache


class CountingRenderer:
    """Renders a page, and counts how often."""

    def __init__(self, error: Exception | None = None) -> None:
        self.count = 0
        self.error = error
        self.started = asyncio.Event()
        self.proceed = asyncio.Event()
        self.proceed.set()

    async def __call__(self) -> str:
        self.count += 1
        self.started.set()
        await self.proceed.wait()
        if self.error:
            raise self.error
        return f"page {self.count}"


async def test_twenty_tabs_share_one_rendering_of_a_page() -> None:
    cache, render = RenderCache(), CountingRenderer()
    pages = await asyncio.gather(*(cache.get("overview", 60, render) for _ in range(20)))
    assert (set(pages), render.count) == ({"page 1"}, 1)
    assert await cache.get("overview", 60, render) == "page 1"
    assert await cache.get("another", 60, render) == "page 2"
    assert await cache.get("overview", 0, render) == "page 3"


async def test_a_viewer_that_disconnects_does_not_cancel_the_rendering_of_others() -> None:
    cache, render = RenderCache(), CountingRenderer()
    render.proceed.clear()
    first, second = (asyncio.create_task(cache.get("overview", 60, render)) for _ in range(2))
    await render.started.wait()
    first.cancel()
    render.proceed.set()
    assert await second == "page 1"


async def test_a_failed_rendering_is_not_cached() -> None:
    cache, render = RenderCache(), CountingRenderer(LookupError("gone"))
    for _ in range(2):
        with pytest.raises(LookupError):
            await cache.get("job", 60, render)
    assert render.count == 2
