"""An operator finds jobs by their payload, selects them, and changes all of them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from playwright.async_api import expect

from duly import Actor, context
from duly.features.queues.service import Queues
from tests.browser.stage import Stage, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")
WHY: dict[str, Any] = {"actor": Actor.operator("anna"), "reason": "the tests want them to wait"}


async def _fill(stage: Stage, org: uuid.UUID) -> None:
    """Some that failed, one that is at work, and many that wait."""
    registry = stage.app.registry
    with context(org_id=org, actor=Actor.user("u1")):
        failed = [
            registry.get("demo.fails").options(subject_id=f"order-{n}").call(n % 2 == 0) for n in range(6)
        ]
        ended = await stage.app.enqueue_many(failed)
        await stage.app.enqueue_many([registry.get("demo.steps").call("busy", ["one", "two"])])
        for handle in ended:
            await handle.wait(30)
        await Queues(stage.app).pause("q:exports", **WHY)
        regions = ["DE", "FR", "DE", "PL", "DE", "FR", "DE"] * 3
        ship = registry.get("demo.ship")
        await stage.app.enqueue_many(
            [ship.options(subject_id=f"parcel-{n}").call(region, n) for n, region in enumerate(regions)]
        )


async def test_jobs_are_found_by_their_payload_and_all_of_them_canceled(
    stage: Stage, visitor: Visitor
) -> None:
    @stage.app.job("demo.ship", category="transfer")
    async def ship(region: str, number: int) -> str:
        return region

    await _fill(stage, stage.org)
    page = visitor.page
    await visitor.operate(path="/console/jobs")
    await page.keyboard.press("/")
    await page.keyboard.type("status:queued payload.region:DE")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**q=status*")
    rows = page.locator("[data-row]")
    await expect(rows).to_have_count(12)
    await visitor.live()
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await page.keyboard.press("k")
    await page.keyboard.press("x")
    await expect(page.locator("[data-picked]")).to_have_text("2")
    await visitor.shoot("console-jobs-found")
    await page.get_by_label("all matching").check()
    await page.get_by_role("button", name="Cancel …").click()
    await expect(page.get_by_role("heading", name="Cancel jobs")).to_be_visible()
    await visitor.shoot("console-jobs-bulk")
    await page.get_by_label("Reason").fill("the region is closed")
    await page.get_by_role("button", name="Cancel 12 jobs").click()
    await page.wait_for_url("**/console/jobs/*-*")
    job = page.url.partition("?")[0].rpartition("/")[2]
    ended = await stage.app.handle(job, org_id=stage.org).wait(30)
    assert ended.summary_counts == {"total": 12, "succeeded": 12, "skipped": 0}
    await visitor.open("/console/jobs?type=demo.ship&status=canceled")
    await expect(rows).to_have_count(12)
    stage.steps["busy/one"].set()
    stage.steps["busy/two"].set()


async def test_a_platform_operator_sees_the_jobs_of_all_orgs(stage: Stage, visitor: Visitor) -> None:
    with context(org_id=stage.org, actor=Actor.user("u1")):
        failed = await stage.app.jobs.submit("demo.fails", {"passing": False})
    await failed.wait(30)
    await visitor.operate(stage.platform_key, "/console/jobs")
    await visitor.page.get_by_role("link", name="Failed").click()
    await expect(visitor.page.locator("[data-row]").first).to_be_visible()
    await visitor.page.get_by_role("link", name="Deutsch").click()
    await expect(visitor.page.get_by_role("heading", name="Aufträge")).to_be_visible()
    await visitor.shoot("console-jobs-german")
