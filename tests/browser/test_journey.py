"""From the form to the result: also with a closed page, a cancellation or a failure."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Route, expect

from tests.browser.stage import EXACT, Visitor
from tests.http.conftest import key_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
CONTRACT = (
    "Der Vertrag vom 3. Mai 2024 zwischen der Nordwind GmbH und der Stadt Kiel läuft bis Ende 2025. "
    "Die Vergütung beträgt 1.250,00 EUR im Monat, zahlbar auf DE89 3704 0044 0532 0130 00. "
)
LETTER = (
    "Dear Sir or Madam, we confirm the delivery of 40 turbines on 12 March 2025 for a price of $1,200,000. "
    "Please write to orders@northwind.example with questions about the delivery of the turbines. "
    "Do not pay to DE89 3704 0044 0532 0130 01. "
)
PARTS = ["north", "east", "south", "west"]


async def test_texts_and_files_become_an_analysis(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    await visitor.log_in()
    assert "key=" not in page.url
    await visitor.shoot("submit")
    await page.get_by_role("button", name="Start analysis").click()
    await expect(page.get_by_role("alert")).to_have_text("Choose a file or paste a text.")

    names = {"vertrag.txt": CONTRACT * 4, "copy.txt": CONTRACT * 4}
    for name, text in names.items():
        (tmp_path / name).write_text(text)
    await page.get_by_label("Choose files or drop").set_input_files([tmp_path / name for name in names])
    files = "const some = new DataTransfer(); some.items.add(new File(['x'], 'brief.txt')); return some"
    dropped = await page.evaluate_handle(f"() => {{ {files} }}")
    await page.dispatch_event("#drop", "drop", {"dataTransfer": dropped})
    await page.get_by_role("button", name="Remove brief.txt").click()
    await expect(page.get_by_role("list", name="Selected files").get_by_role("listitem")).to_have_count(2)
    await page.get_by_label("Or paste a text").fill(LETTER * 3)
    await page.get_by_role("button", name="Add another text").click()
    await page.get_by_label("Text 2").fill("<img src=x onerror=alert(1)> " * 8)
    await visitor.shoot("submit-filled")
    # Two clicks are one job.
    await page.get_by_role("button", name="Start analysis").dblclick()
    await page.wait_for_url("**/results/*")
    assert (await visitor.stage.jobs()).count("analyze.run") == 1

    await expect(page.locator("#kind")).to_have_text("Final result")
    for heading in ("Overview", "Languages", "Key terms", "Figures", "Timeline", "Similar texts"):
        await expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    await expect(page.get_by_text("identical")).to_be_visible()
    first = page.locator("tbody tr").first
    for word in (
        "DE89370400440532013001",
        "Uncertain: the check digits are wrong",
        "Do not pay to",
        "text-1",
    ):
        await expect(first).to_contain_text(word)
    await expect(page.get_by_role("main")).to_contain_text("Available until at least")
    await expect(page.locator("img[src=x]")).to_have_count(0)
    await visitor.shoot("result-analysis")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="report.json").click()
    report = json.loads(Path(await (await download.value).path()).read_text())
    assert report["totals"]["sources"] == 4
    await _as_it_was_before_its_end(visitor)
    await page.reload()
    for heading in ("vertrag.txt: Languages", "text-1: Length and readability", "copy.txt: Figures"):
        await expect(page.get_by_role("heading", name=heading)).to_be_visible()
    await expect(page.get_by_text("orders@northwind.example").first).to_be_visible()
    await visitor.shoot("result-analysis-partial")
    await page.unroute_all()
    await page.reload()
    await expect(page.locator("#kind")).to_have_text("Final result")


async def _as_it_was_before_its_end(visitor: Visitor) -> None:
    """The result at hand says that it is partial; its parts are the real ones."""

    async def older(route: Route) -> None:
        answer = await route.fetch()
        said = await answer.json()
        changed = {**said, "status": "partial", "snapshot": {**said["snapshot"], "kind": "partial"}}
        await route.fulfill(response=answer, json=changed)

    await visitor.page.route(re.compile(r"/v1/results/[^/]+$"), older)


async def test_partial_results_appear_and_the_page_can_be_closed(visitor: Visitor) -> None:
    page, steps = visitor.page, visitor.stage.steps
    await visitor.log_in()
    await visitor.ask("demo.steps", json.dumps({"name": "a", "parts": PARTS}))
    await expect(page.locator("#status")).to_have_text("Running")
    await expect(page.get_by_text("You can close this page: the job continues")).to_be_visible()
    await expect(page.locator("#note")).to_have_text("looking around")
    await visitor.shoot("job-running")
    steps["a/north"].set()
    await expect(page.locator("#status")).to_have_text("Partial results")
    await expect(page.get_by_role("heading", name="north")).to_be_visible()
    await expect(page.locator("#percent")).to_have_text("25 %")
    await expect(page.get_by_role("progressbar", name="Progress")).to_have_attribute("value", "25")
    await expect(page.get_by_text("<b>no</b>")).to_be_visible()
    steps["a/east"].set()
    await expect(page.locator("#percent")).to_have_text("50 %")
    await visitor.shoot("job-partial")

    permalink = await page.get_by_role("link", name="Permanent link to these results").get_attribute("href")
    address = page.url
    await page.close()
    steps["a/south"].set()
    visitor.page = page = await page.context.new_page()
    await page.goto(address)
    await expect(page.locator("#percent")).to_have_text("75 %")
    await expect(page.locator("#snapshots article")).to_have_count(3)

    watching = await page.context.new_page()
    await watching.goto(visitor.stage.url + permalink)
    await expect(watching.locator("#kind")).to_have_text("Partial result")
    await expect(watching.get_by_text("still running")).to_be_visible()
    await expect(watching.locator("#snapshots article")).to_have_count(3)
    await watching.close()

    steps["a/west"].set()
    await page.wait_for_url(f"**{permalink}")
    await expect(page.locator("#kind")).to_have_text("Final result")
    await expect(page.get_by_role("link", name="list.txt")).to_be_visible()
    await expect(page.get_by_text("2.5")).to_have_count(0)
    await page.locator(".tree summary").filter(has_text="a 2").click()
    await expect(page.get_by_text("2.5")).to_be_visible()
    for name, value in EXACT.items():
        shown = page.locator(".tree > ul > li").filter(has_text=name).locator(".value")
        await expect(shown).to_have_text(json.dumps(value))
    await visitor.shoot("result-tree")
    # Back does not lead into the page that leads here.
    await page.go_back()
    assert "/jobs/" not in page.url


async def test_a_canceled_job_keeps_its_partial_results(visitor: Visitor) -> None:
    page, steps = visitor.page, visitor.stage.steps
    await visitor.log_in()
    await visitor.ask("demo.steps", json.dumps({"name": "b", "parts": PARTS}))
    steps["b/north"].set()
    await expect(page.get_by_role("heading", name="north")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Keep running")).to_be_focused()
    await visitor.shoot("job-cancel")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await page.get_by_role("button", name="Cancel").click()
    await dialog.get_by_label("Reason (optional)").fill("wrong parts")
    await dialog.get_by_role("button", name="Cancel job").click()
    await expect(page.locator("#status")).to_have_text("Canceled")
    await expect(page.get_by_text("Reason: wrong parts")).to_be_visible()
    await expect(page.get_by_role("heading", name="north")).to_be_visible()
    await expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    await visitor.shoot("job-canceled")
    first = page.url

    await page.get_by_role("link", name="Permanent link to these results").click()
    await expect(page.get_by_text("The job was canceled. The results up to then")).to_be_visible()
    await expect(page.get_by_role("heading", name="north")).to_be_visible()
    await visitor.shoot("result-canceled")
    await page.get_by_role("link", name="Open job").click()
    for part in PARTS:
        steps[f"b/{part}"].set()
    await page.get_by_role("button", name="Submit again").click()
    await page.wait_for_url("**/results/*")
    assert first != page.url


async def test_a_failed_job_shows_advice(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.log_in()
    await visitor.ask("demo.fails", '{"passing": true}')
    await expect(page.locator("#status")).to_have_text("Failed")
    ended = page.locator("#ended")
    await expect(ended).to_contain_text("ConnectionError")
    await expect(ended).to_contain_text("the other side hung up")
    await expect(ended).to_contain_text("a retry can succeed")
    await visitor.shoot("job-failed")
    # Any browser of an operator will do: the service has kept what was asked for.
    await page.evaluate("sessionStorage.clear()")
    await _try_again(visitor)

    # Who may not operate asks again from the tab that asked.
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/login")
    await visitor.log_in(key=await key_of(visitor.stage.app, visitor.stage.org, "jobs:read", "jobs:write"))
    await visitor.ask("demo.fails", '{"passing": true}')
    await _try_again(visitor)
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await expect(ended.get_by_role("link", name="Submit again")).to_be_visible()

    await visitor.ask("demo.fails", '{"passing": false}')
    await expect(ended).to_contain_text("customer.incomplete")
    await expect(ended).to_contain_text("would fail again")
    await expect(ended.get_by_role("button", name="Retry")).to_have_count(0)
    await ended.get_by_role("link", name="Submit again").click()
    await page.wait_for_url("**/submit")


async def _try_again(visitor: Visitor) -> None:
    page, first = visitor.page, visitor.page.url
    await page.locator("#ended").get_by_role("button", name="Retry").click()
    await page.wait_for_url(lambda url: "/jobs/" in url and url != first)
    await expect(page.locator("#status")).to_have_text("Failed")


async def test_the_error_of_an_attempt_is_shown_while_the_job_is_retried(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.log_in()
    await visitor.ask("demo.flaky", '{"name": "f"}')
    await expect(page.locator("#status")).to_have_text("Running")
    await expect(page.locator("#last-failure")).to_have_text("Attempt 1 failed: row 1 is no number")
    visitor.stage.steps["f"].set()
    await expect(page.locator("#last-failure")).to_have_text("Attempt 2 failed: row 2 is no number")
    await expect(page.locator("#says")).to_contain_text("Retry at")
    await expect(page.locator("#lines li").first).to_contain_text("warning row 1 <b>looks</b> odd")
    await visitor.shoot("job-retrying")


async def test_an_invalid_request_shows_its_error(visitor: Visitor) -> None:
    page = visitor.page
    visitor.expected = ("422",)
    await visitor.log_in()
    await page.locator("#other > summary").click()
    await page.get_by_label("Job type").fill("demo.steps")
    await expect(page.get_by_label("Payload (JSON)")).to_have_value(re.compile('"parts": \\[\\]'))
    await page.get_by_label("Payload (JSON)").fill("[1]")
    await page.get_by_role("button", name="Submit job").click()
    await expect(page.get_by_role("alert")).to_contain_text("Not a JSON object")
    await page.get_by_label("Payload (JSON)").fill('{"name": 7}')
    await page.get_by_role("button", name="Submit job").click()
    await expect(page.get_by_role("alert")).to_contain_text("payload.name")
    await visitor.shoot("submit-problem")
