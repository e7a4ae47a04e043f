"""Schedules, deliveries, documents and the audit trail in the console."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from duly import Actor, Fail, RetryPolicy
from duly.apps.documents.folders.access import DocumentPrincipal as Reader
from duly.features.audit.sealer import Sealer
from duly.features.notifications.channels import Message
from duly.features.notifications.delivery_job import declare
from duly.features.notifications.dispatcher import NotificationDispatcher
from duly.features.schedules.scheduler import Scheduler
from tests.apps.documents.stage import add
from tests.browser.stage import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")
ANNA = Actor.user("anna")


class Line:
    """A way to reach people that does not work until it is mended."""

    mended = False

    async def send(self, message: Message) -> None:
        if not self.mended:
            raise Fail("the line is cut", code="sms.cut")


async def act(page: Page, which: str, button: str, reason: str | None = "because") -> None:
    """Open the form of a change, say why, and send it."""
    form = page.locator(f"#{which}")
    await form.locator("summary").click()
    if reason is not None:
        await form.get_by_label("Reason").fill(reason)
    await form.get_by_role("button", name=button).click()


async def test_schedules_are_opened_run_paused_and_resumed(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    said = {"cron": "* * * * * *", "job_type": "demo.later", "timezone": "Europe/Berlin", "actor": ANNA}
    await stage.app.schedules.create(stage.org, "heartbeat", **said)
    nightly = {**said, "cron": "30 3 * * 1-5"}
    await stage.app.schedules.create(stage.org, "nightly report", **nightly)
    await visitor.operate(path="/console/schedules")
    while len(await stage.app.schedules.ticks(stage.org, "heartbeat")) < 3:
        await Scheduler(stage.app).once()
    await expect(page.locator(".ticks li").nth(2)).to_be_attached()
    await visitor.shoot("console-schedules")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="nightly report")).to_be_visible()
    await page.get_by_role("link", name="Schedules").click()
    await page.get_by_role("link", name="heartbeat").click()
    await act(page, "pause", "Pause", "painting")
    await expect(page.get_by_text("Paused by api_key:")).to_be_visible()
    await visitor.shoot("console-schedule")
    await act(page, "resume", "Resume", "painted")
    await expect(page.get_by_text("heartbeat resumed.")).to_be_visible()
    await act(page, "pause", "Pause", "enough")
    await act(page, "run", "Run now", "the auditor asked")
    await expect(page.get_by_text("heartbeat started: this is the job.")).to_be_visible()


async def test_a_failed_notification_is_resent(visitor: Visitor) -> None:
    page, stage, line = visitor.page, visitor.stage, Line()
    stage.app.notifications.add_channel("sms", line)
    job = declare(stage.app, stage.app.notifications)
    job.policy = job.policy.model_copy(update={"retry": RetryPolicy(max_attempts=1)})
    facts = {"job_type": "report.build", "finished_at": "2026-03-17T08:15:00Z"}
    for to in ("in_app:u1", "email:anna@example.com", "sms:+49 30 1234567"):
        await stage.app.notifications.send(stage.org, "job.failed", facts, to=to, actor=ANNA)
    notifier = NotificationDispatcher(stage.app)
    await notifier.once()
    await visitor.operate(path="/console/notifications")
    await expect(page.get_by_role("row").filter(has_text="the line is cut")).to_be_visible()
    await visitor.shoot("console-notifications")
    await page.get_by_label("Status").select_option("failed")
    await page.get_by_role("button", name="Filter").click()
    await page.wait_for_url("**status=failed**")
    await page.get_by_role("row").filter(has_text="sms:").get_by_role("link").first.click()
    await expect(page.get_by_text("the line is cut")).to_be_visible()
    line.mended = True
    await act(page, "resend", "Resend", "the line is mended")
    await expect(page.get_by_text("Notification is being resent.")).to_be_visible()
    await notifier.once()
    await expect(page.locator(".head .chip")).to_have_text("Sent")
    await page.get_by_role("link", name="Notifications").click()
    await page.get_by_role("link", name="Suppressions").click()
    form = page.locator("#suppress")
    await form.locator("summary").click()
    await form.get_by_label("Recipient").fill("email:eve@example.com")
    await form.get_by_label("Reason").fill("has left")
    await form.get_by_role("button").click()
    await expect(page.get_by_text("email:eve@example.com")).to_be_visible()


async def test_webhooks_are_tested_disabled_and_enabled(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    why = {"actor": ANNA, "reason": "a test"}
    url = "https://hooks.example.com/T0K3N"
    made = await stage.app.webhooks.create(
        stage.org, url, ["job.completed", "job.failed"], description="Chat of the night shift", **why
    )
    await stage.app.webhooks.create(stage.org, url, ["*"], **why)
    await visitor.operate(path="/console/webhooks")
    await page.get_by_role("link", name="Chat of the night shift").click()
    await act(page, "test", "Send test")
    await expect(page.get_by_role("heading", name="webhook.test")).to_be_visible()
    await page.get_by_role("link", name="Chat of the night shift").click()
    await expect(page.get_by_role("link", name="webhook.test")).to_be_visible()
    await visitor.shoot("console-webhook")
    await act(page, "disable", "Disable", "too noisy")
    await expect(page.get_by_text("too noisy")).to_be_visible()
    await act(page, "enable", "Enable")
    await expect(page.get_by_text("Webhook enabled.")).to_be_visible()
    assert (await stage.app.webhooks.get(stage.org, made.endpoint.endpoint_id)).disabled_at is None


async def test_the_audit_trail_is_filtered_and_verified(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    for name in ("eve", "bob"):
        await stage.app.members.set(
            stage.org, name, "viewer", actor=Actor.operator("otto"), reason="new here"
        )
    await Sealer(stage.app).once()
    await visitor.operate(path="/console/audit")
    await page.get_by_role("row").filter(has_text="eve").get_by_role("link", name="member.set").click()
    await page.wait_for_url("**action=member.set**")
    await expect(page.locator("tbody tr")).to_have_count(2)
    await page.locator("tbody tr").first.get_by_text("new here").click()
    await act(page, "verify", "Verify", None)
    await expect(page.get_by_text("Verified: all")).to_be_visible()
    await page.get_by_role("row").filter(has_text="eve").get_by_text("new here").click()
    await visitor.shoot("console-verified")


async def test_the_documents_page_links_to_the_customer_pages_and_back(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    anna = Reader(stage.org, ANNA)
    await visitor.operate(path="/console/documents")
    await add(stage.app, anna, b"%PDF-1.7 and no more", "torn.pdf", engine="fast")
    await add(stage.app, anna, "zzz qqq", "words.txt", engine="fast")
    await expect(page.locator("#waits")).to_have_text("1")
    await expect(page.get_by_role("row").filter(has_text="torn.pdf")).to_contain_text("document.broken")
    await visitor.shoot("console-documents")
    await page.keyboard.press("/")
    await page.keyboard.type("qqq")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="words.txt")).to_be_visible()
    await page.get_by_role("link", name="Console").click()
    await page.get_by_role("link", name="Documents", exact=True).click()
    await page.get_by_role("link", name="Review").click()
    await expect(page.get_by_role("heading", name="words.txt")).to_be_visible()
