"""Sign-in, languages, a prefix, polling, stale jobs and missing pages."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from playwright.async_api import FilePayload, Route, expect

from duly import Actor, context
from tests.browser.stage import PREFIX, Visitor
from tests.http.conftest import key_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_customer_signs_in_and_out(visitor: Visitor) -> None:
    page = visitor.page
    visitor.expected = ("401",)
    await visitor.open("/jobs?status=failed")
    await page.wait_for_url("**/login?next=*")
    await visitor.shoot("login")
    await page.get_by_label("API key or token").fill("duly_live_nonsense")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("is invalid or has expired")
    await visitor.shoot("login-refused")
    await page.get_by_label("API key or token").fill(f"  {visitor.stage.key}\n")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/jobs?status=failed")
    assert await page.evaluate("document.cookie") == "", "no script reads the cookie"
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/login")
    await visitor.open("/jobs")
    await page.wait_for_url("**/login?next=*")


async def test_a_link_with_a_key_needs_a_click_to_sign_in(visitor: Visitor) -> None:
    page, app = visitor.page, visitor.stage.app
    other = uuid.uuid4()
    await app.create_org(other, "Elsewhere")
    foreign = await key_of(app, other)
    await visitor.open("/login")
    await page.evaluate("key => location.hash = `key=${key}`", foreign)
    await expect(page.get_by_text("This link contains a key. Sign in with it?")).to_be_visible()
    assert "key=" not in page.url
    await visitor.log_in()
    cookies = await page.context.cookies()

    await visitor.open(f"/login#key={foreign}")
    await expect(page.locator("#already")).to_contain_text("already signed in to the org “Acme”")
    await expect(page.get_by_text("This link contains a key. Sign in with it?")).to_be_visible()
    await expect(page.get_by_label("API key or token")).to_have_value(foreign)
    await expect(page.locator("#log-in")).to_be_focused()
    assert "key=" not in page.url
    assert await page.context.cookies() == cookies
    await visitor.shoot("login-link")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/submit")
    await visitor.open("/login")
    await expect(page.locator("#already")).to_contain_text("“Elsewhere”")


async def test_in_german_from_the_first_page_to_the_last(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.open(f"/login?lang=de#key={visitor.stage.key}")
    await page.get_by_role("button", name="Anmelden").click()
    await page.wait_for_url("**/submit")
    await expect(page.get_by_role("heading", name="Neuer Auftrag")).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    image: FilePayload = {"name": "bild.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n"}
    await page.get_by_label("Dateien auswählen oder").set_input_files(image)
    await page.get_by_label("Oder Text einfügen").fill("Am 3. Mai 2024 wurden 1.250,00 EUR gezahlt. " * 10)
    await visitor.shoot("submit-german")
    await page.get_by_role("button", name="Analyse starten").click()
    await page.wait_for_url("**/results/*")
    await expect(page.get_by_role("heading", name="Überblick")).to_be_visible()
    await expect(page.locator(".shares").first).to_contain_text("Deutsch")
    await expect(page.locator(".timeline time").first).to_have_text("03.05.2024")
    await expect(page.locator(".timeline time").first).to_have_attribute("datetime", "2024-05-03")
    await expect(page.get_by_role("cell", name="1.250,00 EUR", exact=True).first).to_be_visible()
    unread = page.get_by_role("row").filter(has_text="bild.png")
    await expect(unread).to_have_text("bild.pngNicht lesbar: ein Bild")
    await visitor.shoot("result-german")
    await page.get_by_role("link", name="Aufträge").click()
    await expect(page.get_by_role("cell", name="Erfolgreich").first).to_be_visible()
    await visitor.shoot("jobs-german")
    await page.get_by_role("link", name="English").click()
    await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()


async def test_the_pages_work_under_a_prefix(visitor: Visitor) -> None:
    page = visitor.page
    visitor.stage.steps["p/one"].set()
    await visitor.log_in(PREFIX)
    await page.locator("#other > summary").click()
    await page.get_by_label("Job type").fill("demo.steps")
    await page.get_by_label("Payload (JSON)").fill('{"name": "p", "parts": ["one"]}')
    await page.get_by_role("button", name="Submit job").click()
    await page.wait_for_url(f"**{PREFIX}/results/*")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="list.txt").click()
    assert PREFIX in (await download.value).url
    await page.get_by_role("link", name="Jobs").click()
    await page.get_by_role("link", name="demo.steps").first.click()
    await page.wait_for_url(f"**{PREFIX}/results/*")


async def test_the_page_polls_without_a_stream(visitor: Visitor) -> None:
    page, steps = visitor.page, visitor.stage.steps
    visitor.expected = ("429",)

    async def refuse(route: Route) -> None:
        await route.fulfill(status=429)

    await page.route("**/events*", refuse)
    await visitor.log_in()
    job = await visitor.ask("demo.steps", '{"name": "s", "parts": ["one", "two", "three"]}')
    await expect(page.locator("#status")).to_have_text("Running")
    steps["s/one"].set()
    await expect(page.get_by_role("heading", name="one")).to_be_visible()
    steps["s/two"].set()
    await expect(page.locator("#percent")).to_have_text("66 %")
    listed = await page.context.new_page()
    await listed.goto(f"{visitor.stage.url}/jobs")
    row = listed.get_by_role("row").filter(has=listed.locator(f"a[href$='{job}']"))
    await expect(row).to_contain_text("66\u00a0%")
    steps["s/three"].set()
    await page.wait_for_url("**/results/*")


async def test_a_stale_job_and_a_lost_connection_are_shown(visitor: Visitor) -> None:
    page = visitor.page
    visitor.expected = ("ERR_INTERNET_DISCONNECTED", "ERR_NETWORK")
    stage = visitor.stage
    with context(org_id=stage.org, actor=Actor.user("u1"), request_id="r"):
        later = stage.app.registry.get("demo.later").options(scheduled_for=datetime(2999, 1, 1, tzinfo=UTC))
        handle = await later.enqueue()
    await visitor.log_in()
    await visitor.open(f"/jobs/{handle.job_id}")
    await expect(page.locator("#says")).to_contain_text("2999")
    await expect(page.locator("#stale")).to_be_hidden()

    async with (await stage.app.resources()).database.engine() as conn:
        await conn.execute("delete from duly.scheduled where job_id = %s", [handle.job_id])
    come_back = "document.dispatchEvent(new Event('visibilitychange'))"
    await page.evaluate(come_back)
    await expect(page.locator("#stale")).to_contain_text("No heartbeat since")
    await page.context.set_offline(True)
    await page.evaluate(come_back)
    await expect(page.get_by_text("Disconnected. Reconnecting")).to_be_visible()
    await visitor.shoot("job-stale")
    await page.context.set_offline(False)
    await expect(page.get_by_text("Disconnected. Reconnecting")).to_be_hidden()


async def test_unknown_and_foreign_resources_look_the_same(visitor: Visitor) -> None:
    page, app = visitor.page, visitor.stage.app
    visitor.expected = ("404",)
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    with context(org_id=other, actor=Actor.user("u1"), request_id="r"):
        foreign = await app.registry.get("demo.fails").enqueue(passing=False)
    await visitor.log_in()
    seen = set()
    for path in (f"/jobs/{foreign.job_id}", f"/jobs/{uuid.uuid4()}", f"/results/{uuid.uuid4()}", "/jobs/x"):
        await visitor.open(path)
        seen.add(await page.inner_text("main"))
    assert len(seen) == 1
    await expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    await visitor.shoot("missing")


async def test_a_reader_cannot_change_anything(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    await visitor.log_in(key=await key_of(stage.app, stage.org, "jobs:read"))
    await expect(page.get_by_text("has read-only access and cannot submit jobs")).to_be_visible()
    with context(org_id=stage.org, actor=Actor.user("u1"), request_id="r"):
        handle = await stage.app.registry.get("demo.steps").enqueue(name="r", parts=["one"])
    await visitor.open(f"/jobs/{handle.job_id}")
    await expect(page.locator("#status")).to_have_text("Running")
    await expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    stage.steps["r/one"].set()
    await page.wait_for_url("**/results/*")


async def test_the_pages_can_be_used_with_the_keyboard_alone(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.log_in()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    nameless = await page.evaluate(
        "[...document.querySelectorAll('input, textarea, select, button')]"
        ".filter((one) => !one.labels?.length && !one.textContent.trim() && !one.ariaLabel).length"
    )
    assert nameless == 0
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Choose files or drop")).to_be_focused()
    await expect(page.get_by_label("Choose files or drop")).not_to_have_css("outline-style", "none")
