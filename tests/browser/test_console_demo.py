"""The demo in the browser: the strip of promises on every page, and a worker that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
import pytest_asyncio
from playwright.async_api import expect
from world.application import make
from world.people import ORGS
from world.town import Town, living

from duly.documents.schema import SCHEMA
from duly.testing import Cluster
from tests.browser.stage import Stage, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """The town, in which customers have asked for something."""
    ready: asyncio.Future[Town] = asyncio.get_running_loop().create_future()
    over, home = asyncio.Event(), tmp_path_factory.mktemp("town")

    async def live() -> None:
        with cluster.fresh(schemas=[SCHEMA]) as fresh:
            app = make(database_url=fresh.direct_url, blobs_url=str(home), home=home)
            async with living(app, port=0) as town:
                await town.load.begin(24)
                ready.set_result(town)
                await over.wait()

    living_on = asyncio.create_task(live())
    await asyncio.wait([living_on, ready], return_when=asyncio.FIRST_COMPLETED)
    if living_on.done():
        await living_on
    town, org = await ready, ORGS[0].org_id
    made = Stage(town.app, org, town.keys.of[org], town.url)
    made.platform_key, made.issuer = town.keys.platform, SimpleNamespace(url=town.url)
    yield made
    over.set()
    await living_on


async def test_a_worker_is_killed_and_its_job_is_taken_over(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.operate(visitor.stage.platform_key, "/console/demo")
    strip = page.get_by_label("Promises checked so far")
    await expect(strip).to_contain_text("no stale write")
    await page.get_by_role("button", name="Kill a worker").click()
    await page.wait_for_url("**/console/jobs/*?org=*")
    await expect(
        page.get_by_role("status").filter(has_text="was killed while it held this job")
    ).to_be_visible()
    await expect(strip).to_be_visible()
    await expect(page.locator("#waterfall .f-sign.f-taken_over").first).to_be_attached()
    await expect(page.locator("#waterfall .f-sign.f-lease_lost").first).to_be_attached()
    await visitor.shoot("console-demo-job")
    await page.get_by_role("link", name="Demo", exact=True).click()
    [row] = await page.locator("tr[id^=incident]").all()
    await expect(row).to_contain_text("by worker-")
    await expect(page.locator("tr[data-verdict=held]").nth(9)).to_be_visible()
    assert await page.locator("[data-verdict=broken]").count() == 0
    await visitor.shoot("console-demo")


async def test_a_customer_sees_the_strip_and_no_button(visitor: Visitor) -> None:
    await visitor.operate(visitor.stage.key, "/console")
    await expect(visitor.page.get_by_label("Promises checked so far")).to_be_visible()
    await expect(visitor.page.get_by_role("link", name="Kill a worker")).to_have_count(0)
    visitor.expected = ("404", "403")
    answer = await visitor.page.goto(visitor.stage.url + "/console/demo")
    assert answer is not None
    assert answer.status in (403, 404)
