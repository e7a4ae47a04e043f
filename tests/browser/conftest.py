"""One browser and one service for a module; a window of its own for each test."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from duly.apps.documents.schema import SCHEMA
from duly.testing import DatabaseCluster
from tests.browser.stage import WIDE, Stage, Visitor, staged

TIMEOUT = 20_000
"""Milliseconds: the machine may be under load."""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here: neither chromium, chromium-browser nor google-chrome")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield running
        await running.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(
    browser: Browser, cluster: DatabaseCluster, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    ready: asyncio.Future[Stage] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def play() -> None:
        with cluster.fresh(schemas=[SCHEMA]) as fresh:
            async with staged(fresh, tmp_path_factory.mktemp("blobs")) as made:
                ready.set_result(made)
                await over.wait()

    # In a task of its own: what is entered must be left in the same one.
    playing = asyncio.create_task(play())
    await asyncio.wait([playing, ready], return_when=asyncio.FIRST_COMPLETED)
    if playing.done():
        await playing
    yield await ready
    over.set()
    await playing


@pytest_asyncio.fixture(loop_scope="module")
async def visitor(browser: Browser, stage: Stage) -> AsyncIterator[Visitor]:
    """A visitor with a browser window; at the end the window must have no errors."""
    context = await browser.new_context(locale="en-GB", viewport=WIDE, reduced_motion="reduce")
    context.set_default_timeout(TIMEOUT)
    expect.set_options(timeout=TIMEOUT)
    made = Visitor(stage, await context.new_page())
    made.watch(context)
    yield made
    await context.close()
    assert made.trouble == []
