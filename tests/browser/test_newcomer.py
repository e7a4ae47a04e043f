"""The clicks that the README describes, with its first program."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from duly.testing import FreshDatabase
from tests.architecture.readme_program import first_steps
from tests.browser.conftest import TIMEOUT

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_newcomer_sees_their_own_job_in_the_browser(
    browser: Browser, fresh: FreshDatabase, tmp_path: Path
) -> None:
    with first_steps(fresh, tmp_path) as ready:
        window = await browser.new_context(locale="en-GB")
        window.set_default_timeout(TIMEOUT)
        page = await window.new_page()
        await page.goto(ready["login"])
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_text("Other job types").click()
        await page.get_by_label("Job type", exact=True).fill("report.build")
        await page.get_by_label("Payload (JSON)").fill('{"regions": ["DE", "FRA"]}')
        await page.get_by_role("button", name="Submit job").click()
        await page.wait_for_url("**/results/*")
        await expect(page.get_by_text("6078").first).to_be_visible(timeout=TIMEOUT)
        await window.close()
