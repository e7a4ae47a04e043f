"""Every page of the console, in German, in the dark and on a narrow screen: it is accessible."""

from __future__ import annotations

import httpx
import pytest

from duly.core.job import SYSTEM_ORG
from tests.browser.stage import NARROW, Visitor
from tests.console.strolling import route_of, stroll
from tests.http.conftest import key_of
from tests.http.sample_org import create_sample_org

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _pages(url: str, key: str) -> dict[str, str]:
    """Return one address of each page that this key can open."""
    async with httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {key}"}) as person:
        found = await stroll(person)
    return {route_of(link): link for link in reversed(found.links)}


async def test_every_page_is_accessible_and_fits_a_narrow_screen(visitor: Visitor) -> None:
    stage, page = visitor.stage, visitor.page
    org = await create_sample_org(stage.app, "Verwaltungsgemeinschaft")
    platform = await key_of(stage.app, SYSTEM_ORG, "platform")
    seen: set[str] = set()
    await page.set_viewport_size(NARROW)
    await page.emulate_media(color_scheme="dark")
    for key in (org.key.text, platform):
        await visitor.operate(key)
        for route, place in (await _pages(stage.url, key)).items():
            if route not in seen:
                seen.add(route)
                await visitor.open(f"{place}{'&' if '?' in place else '?'}lang=de")
                await visitor.check_accessible(place)
                await visitor.check_fits(place)
                await visitor.picture(f"walk{route.replace('/', '-')}")
    assert "/account" in seen
