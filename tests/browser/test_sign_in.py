"""Sign-in with the identity provider."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from duly.features.members.service import Members
from tests.browser.stage import PREFIX, Visitor
from tests.http.conftest import ANNA

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_member_signs_in_with_the_provider_and_out_of_all_sessions(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    stage.issuer.person = {"sub": "anna", "org_id": str(stage.org)}
    visitor.expected = ("403",)
    await visitor.open("/console/account?lang=en")
    await page.wait_for_url("**/login?next=*")
    await visitor.shoot("login-sso")
    await page.get_by_role("link", name="Sign in with Acme").click()
    await expect(page.get_by_role("heading", name="Sign-in failed")).to_be_visible()
    await expect(page.get_by_role("main")).to_contain_text("anna")
    await visitor.shoot("login-sso-unknown")

    await Members(stage.app).set(stage.org, "anna", "viewer", actor=ANNA, reason="hired")
    await page.get_by_role("link", name="Back to sign-in").click()
    await page.get_by_role("link", name="Sign in with Acme").click()
    await page.wait_for_url("**/console/account?lang=en")
    await expect(page.get_by_role("main")).to_contain_text("Signed in as")
    await expect(page.get_by_role("row").filter(has_text="this browser")).to_have_count(1)
    await visitor.live()
    await visitor.shoot("console-account")
    await page.get_by_role("button", name="Sign out of all sessions").click()
    await page.wait_for_url("**/login")


async def test_a_platform_operator_is_redirected_to_a_mounted_console(visitor: Visitor) -> None:
    page = visitor.page
    visitor.stage.issuer.person = {"sub": "ops-1", "ops": True}
    await visitor.open(f"{PREFIX}/login")
    await page.get_by_role("link", name="Sign in with Acme").click()
    await page.wait_for_url(f"**{PREFIX}/console")
    await expect(page.get_by_text("All orgs", exact=True)).to_be_visible()
