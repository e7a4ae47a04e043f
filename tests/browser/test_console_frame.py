"""The console's frame as people use it: languages, colours, keys, and whether it is live."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.stage import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_frame_has_its_languages_colours_and_keys(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.operate()
    await visitor.shoot("console-frame")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await visitor.shoot("console-keys")
    await page.get_by_role("button", name="Close").click()
    await page.get_by_role("link", name="Deutsch").click()
    await expect(page.get_by_role("heading", name="Übersicht")).to_be_visible()
    await page.get_by_role("link", name="Dunkel").click()
    assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    await visitor.live()
    await page.get_by_role("button", name="Abmelden").click()
    await page.wait_for_url("**/login")
