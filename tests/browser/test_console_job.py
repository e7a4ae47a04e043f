"""A failure, its cause and its replay; a fixed payload; and a lost worker."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from playwright.async_api import expect

from duly import Context, Duly, RetryPolicy
from duly.core.job import Actor
from duly.maintenance.reaper import Reaper
from tests.browser.stage import Stage, Visitor
from tests.worker.working import RETRY_AT_ONCE, silent_worker

pytestmark = pytest.mark.asyncio(loop_scope="module")
WHY = "the provider is back"


class World:
    """What the jobs of this module depend on."""

    def __init__(self) -> None:
        self.broken = True
        self.started, self.go_on = asyncio.Event(), asyncio.Event()


def declare_send(app: Duly, world: World) -> Any:
    @app.job("invoice.send", retry=RetryPolicy(max_attempts=1))
    async def send(ctx: Context, to: str, pages: int, region: str = "DE") -> int:
        ctx.log.info("looking for the address of %d pages", pages)
        if world.broken:
            ctx.log.error("the provider does not answer")
            raise ConnectionError("mail.example.org: connection refused")
        return pages

    return send


def declare_build(app: Duly, world: World) -> Any:
    @app.job("ledger.close", retry=RETRY_AT_ONCE, queue="q:zombies")
    async def build(ctx: Context, name: str) -> int:
        for n in range(4):
            await ctx.partial(
                {"rows": 100 * (n + 1), "region": "DE", "done": ["a", "b", "c"][:n]}, percent=20 * n
            )
        ctx.log.info("attempt %d of %s", ctx.job.attempt, name)
        if ctx.job.attempt == 1:
            world.started.set()
            await world.go_on.wait()
        return 4

    return build


async def test_a_failure_is_traced_replayed_and_its_payload_fixed(stage: Stage, visitor: Visitor) -> None:
    world, page = World(), visitor.page
    send = declare_send(stage.app, world)
    choices = {"org_id": stage.org, "actor": Actor.user("u1")}
    for n in range(3):
        handle = await send.options(**choices, subject_id=f"customer-{n}").enqueue("ada@example.org", pages=n)
        await handle.wait(20)
    await visitor.operate()
    # The way from the overview: the kind, its latest job, and the two clicks that replay it.
    await page.locator("#errors .type", has_text="invoice.send").click()
    await expect(page.locator("#open-letters")).to_have_text("3")
    await page.locator("#cause").click()
    await expect(page.locator("#attempts")).to_contain_text("connection refused")
    await expect(page.locator("#attempts")).to_contain_text("the provider does not answer")
    await visitor.live()
    await visitor.shoot("console-job-dead")
    world.broken = False
    await page.locator("#replay > summary").click()
    await page.get_by_label("Reason").first.fill(WHY)
    await page.locator("#replay button").click()
    await expect(page.get_by_text("Replay created.")).to_be_visible()
    await expect(page.locator(".job-head .chip")).to_have_text("Succeeded")

    # The canary, then the rest.
    await visitor.open("/console/dead")
    await visitor.shoot("console-dead")
    await page.get_by_role("link", name="connection_error").click()
    await page.locator("#canary > summary").click()
    await page.locator("#canary-reason").fill(WHY)
    await page.locator("#canary form button").click()
    await expect(page.locator("#canary-fate")).to_contain_text("The canary succeeded")
    await visitor.shoot("console-dead-canary")
    assert "ada@example.org" not in await page.content()

    # The last one is fixed: first with a mistake.
    await page.locator("#cause").click()
    await page.locator("#fix").click()
    box = page.get_by_label("Payload")
    text = await box.input_value()
    assert "[email]" in text
    assert "ada@" not in text
    await box.fill(text.replace('"pages": 0', '"pages": "none"').replace('"DE"', "49"))
    await page.get_by_label("Reason").fill("the number of pages was wrong")
    visitor.expected = ("422",)
    await page.get_by_role("button", name="Validate and replay").click()
    await expect(page.locator("#fix-wrong")).to_contain_text("payload.pages")
    await expect(page.locator("#fix-wrong")).to_contain_text("payload.region")
    assert '"none"' in await box.input_value()
    await visitor.shoot("console-fix-refused")
    await box.fill(text.replace('"pages": 0', '"pages": 12'))
    await page.get_by_role("button", name="Validate and replay").click()
    await expect(page.get_by_text("with the new payload")).to_be_visible()
    await expect(page.locator("#payload-text")).to_contain_text('"pages": 12')
    await expect(page.locator(".job-head .chip")).to_have_text("Succeeded")
    made = page.url.rpartition("/")[2]
    assert (await stage.app.jobs.payload(stage.org, made))["to"] == "ada@example.org"
    await page.locator("#commands > summary").click()
    await expect(page.locator("#curl-text")).to_contain_text("$DULY_KEY")


async def test_the_timeline_shows_a_lost_worker_the_takeover_and_the_rejected_write(
    stage: Stage, visitor: Visitor
) -> None:
    world, page, app = World(), visitor.page, stage.app
    await app.queues.create("q:zombies", actor=Actor.operator("op"), reason="a worker of their own")
    build = declare_build(app, world)
    handle = await build.options(org_id=stage.org, actor=Actor.user("u1")).enqueue("may")
    await visitor.operate()
    await visitor.open(f"/console/jobs/{handle.job_id}")
    await visitor.live()
    await expect(page.locator(".job-why")).to_contain_text("No active worker serves the queue q:zombies.")
    with psycopg.connect(app.database_urls.url, autocommit=True) as sql:
        async with silent_worker(app, sql, queues=("q:zombies",)) as old:
            await world.started.wait()
            await expect(page.locator("#waterfall .f-running")).not_to_have_count(0)
            await expect(page.locator("#partials .diff")).to_contain_text("rows")
            await visitor.shoot("console-job-running")
            silent = "update duly.workers set heartbeat_at = now() - interval '1 hour' where worker_id = %s"
            sql.execute(silent, [old.worker_id])
            while await Reaper(app).once():
                if (await handle.status()).status == "queued":
                    break
            async with app.worker(queues=("q:zombies",)):
                await handle.wait(20)
            world.go_on.set()
            await old.loop_events.wait("lost")
    lines = page.locator("#waterfall .fall-row")
    await expect(lines).to_have_count(2)
    await expect(lines.nth(0).locator("svg.f-refused")).to_have_count(1)
    await expect(lines.nth(0).locator("svg.f-lease_lost")).to_have_count(1)
    await expect(lines.nth(1).locator("svg.f-taken_over")).to_have_count(1)
    await expect(page.locator("#healed-1")).to_contain_text("the worker stopped sending heartbeats")
    await page.locator("#fall-table > summary").click()
    await expect(page.locator("#fall-table")).to_contain_text("Late write rejected (done)")
    await visitor.shoot("console-job-zombie")
    await visitor.open(f"/console/jobs/{handle.job_id}?lang=de&a=1&b=4")
    await expect(page.locator("#partials")).to_contain_text("geändert")
    await visitor.shoot("console-job-german")
