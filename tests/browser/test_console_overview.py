"""The overview, the workers and the orgs of the console."""

from __future__ import annotations

import asyncio
import re
import uuid
from datetime import timedelta

import pytest
from playwright.async_api import expect

from duly import Actor, Duly, context
from tests.browser.stage import Stage, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")
ANNA = Actor.operator("anna")
WHY = {"actor": ANNA, "reason": "the provider is down"}
_HOUR = """
insert into duly.queue_minutes
select date_trunc('minute', now()) - make_interval(mins => n), q.queue, gen_random_uuid(), w.size, w.size,
       case when n % 13 < 2 then 3 else 0 end, 0, 0, w.size * 0.4,
       array[10 + q.size % 5, 14 + (8 * abs(sin(n / 17.0)))::int]::smallint[], array[w.size, 2],
       array[18, 20 + (4 * cos(n / 11.0))::int]::smallint[], array[w.size, 3]
from generate_series(1, 58) n
cross join (values ('q:default', 30), ('q:exports', 8), ('q:notifications', 90)) q(queue, size)
cross join lateral (select (q.size * (1.2 + sin(n / 9.0)))::int + n % 7 as size) w
where not (q.queue = 'q:exports' and n between 20 and 35)
"""


async def _trouble(app: Duly, org: uuid.UUID) -> uuid.UUID:
    """Some of everything that can be wrong, and an hour of work before it; another org that waits."""
    other = uuid.uuid4()
    await app.create_org(other, "Globex Logistics")
    async with (await app.resources()).database.engine() as conn:
        await conn.execute(_HOUR)
        await conn.execute(
            "insert into duly.alerts (org_id, alert_id, kind, target, severity, summary, detail, measured) "
            "values (%s, gen_random_uuid(), 'webhook_failing', 'x', 'warning', 'x', %s, 12)",
            [org, '{"host": "hooks.example.com"}'],
        )
    await app.queues.pause("q:planning", **WHY)
    await app.limits.set(org, max_running=20, starts_per_second=5, **WHY)
    await app.limits.pause(other, **WHY)
    fails = app.registry.get("demo.fails")
    for whose, times in ((org, 3), (other, 1)):
        with context(org_id=whose, actor=ANNA):
            for passing in (True, False):
                for n in range(times):
                    await fails.options(idempotency_key=f"{passing} {n}").enqueue(passing)
    return other


async def test_the_overview_shows_alerts_queues_and_workers(visitor: Visitor, stage: Stage) -> None:
    page = visitor.page
    other = await _trouble(stage.app, stage.org)
    with context(org_id=stage.org, actor=ANNA):
        held = await stage.app.registry.get("demo.steps").enqueue("held", ["a", "b"])
    await visitor.operate(stage.platform_key)
    await expect(page.locator("#verdict")).to_have_attribute("data-level", "warn")
    await expect(page.locator("#dying")).to_be_visible()
    await expect(page.get_by_role("heading", name="Queued jobs")).to_be_visible()
    await expect(page.locator("[id='queue-q:notifications'] svg").first).to_be_visible()
    await expect(page.locator("#errors .type", has_text="demo.fails").first).to_be_visible()
    await visitor.shoot("console-overview")
    # What changes is seen without a reload.
    with context(org_id=stage.org, actor=ANNA):
        await stage.app.queues.pause("q:exports", **WHY)
    await expect(page.locator("[id='paused-q:exports']")).to_be_visible()
    cause = page.locator("#errors .type").first
    await expect(cause).to_have_attribute("href", re.compile(r"/console/dead\?.*fingerprint=[0-9a-f]{16}"))
    stage.steps["held/a"].set()
    stage.steps["held/b"].set()
    await held.wait(30)
    await visitor.open(f"/console?org={stage.org}")
    await expect(page.get_by_text("Acme")).to_be_visible()
    await expect(page.get_by_role("heading", name="Database")).to_have_count(0)
    await visitor.shoot("console-overview-org")

    async with stage.app.worker(name="till-7", heartbeat=timedelta(milliseconds=200)) as second:
        await visitor.open("/console/workers")
        await visitor.live()
        row = page.locator(f"#worker-{second.worker_id}")
        await expect(row).to_contain_text("Active")
        await visitor.shoot("console-workers")
        await row.locator("summary").click()
        await visitor.shoot("console-workers-drain")
        await row.get_by_label("Reason").fill("a new version comes")
        await row.get_by_role("button", name="Drain").click()
        await expect(page.get_by_role("status").filter(has_text="till-7")).to_be_visible()
        await asyncio.wait_for(second.retired.wait(), 30)
        await expect(row).to_have_count(0)

    await visitor.open("/console/orgs")
    await visitor.live()
    await expect(page.locator(f"#org-{other}")).to_contain_text("paused")
    await visitor.shoot("console-orgs")
    await page.get_by_role("link", name="All", exact=True).click()
    await expect(page.locator(f"#org-{stage.org}")).to_be_visible()
    await page.locator(f"#org-{other}").get_by_role("link", name="Globex Logistics").click()
    await expect(page.locator(".whose")).to_contain_text("Globex Logistics")


async def test_the_overview_without_alerts_in_german(visitor: Visitor, stage: Stage) -> None:
    page = visitor.page
    await visitor.operate()
    await page.get_by_role("link", name="Deutsch").click()
    await expect(page.get_by_role("heading", name="Fehlgeschlagene Aufträge (24 h)")).to_be_visible()
    await expect(page.get_by_role("link", name="Worker")).to_have_count(0)
    await visitor.shoot("console-overview-de")
