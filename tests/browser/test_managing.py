"""Documents: changed, shared, reviewed, filed, imported and exported."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from duly import Actor
from duly.apps.documents.folders.access import DocumentPrincipal as Asker
from tests.apps.documents.stage import add
from tests.browser.stage import Stage, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")
VAGUE = "Wir senden Kontoauszug und Rechnung."


async def document(stage: Stage, text: str = "Der erste Stand.", name: str = "Brief.txt") -> str:
    who = Asker(stage.org, Actor.operator("test"))
    made = await add(stage.app, who, text, name, engine="fast")
    [reading] = await stage.app.documents.extractions(who, made.document_id)
    assert reading.job_id is not None
    await stage.app.handle(reading.job_id, org_id=stage.org).wait(60)
    return f"/documents/{made.document_id}"


async def test_a_document_is_renamed_moved_and_gets_a_new_version(visitor: Visitor, tmp_path: Path) -> None:
    page, stage = visitor.page, visitor.stage
    who = Asker(stage.org, Actor.operator("test"))
    await stage.app.documents.folders.create(who, "Verträge")
    path = await document(stage)
    await visitor.log_in()
    await visitor.open(path)
    await page.get_by_text("Rename, move, edit metadata").click()
    await page.get_by_label("Name").fill("Mietvertrag.txt")
    await page.get_by_label("Folder").select_option("Verträge")
    await page.get_by_label("Metadata").fill("year")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_text("Invalid line “year”: use NAME=VALUE.")).to_be_visible()
    await visitor.shoot("document-change")
    await page.get_by_label("Metadata").fill("year=2026\nwho=<b>Anna</b>")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_role("heading", name="Mietvertrag.txt")).to_be_visible()
    await expect(page.get_by_role("link", name="Verträge")).to_be_visible()
    await expect(page.locator("#facts")).to_contain_text("<b>Anna</b>")
    await expect(page.locator("#change-metadata")).to_have_value("who=<b>Anna</b>\nyear=2026")

    (tmp_path / "neu.txt").write_text("Der zweite Stand.")
    (tmp_path / "leer.txt").touch()
    await page.get_by_label("New version").set_input_files(tmp_path / "leer.txt")
    await expect(page.locator("#version-said")).to_have_text("is empty")
    await page.get_by_label("New version").set_input_files(tmp_path / "neu.txt")
    await expect(page.locator("#versions li")).to_have_count(2)
    await expect(page.locator("#page-1")).to_contain_text("Der zweite Stand.")
    await page.get_by_label("New version").set_input_files(tmp_path / "neu.txt")
    await expect(page.locator("#version-said")).to_contain_text("nothing was changed")
    await visitor.shoot("document-version")


async def test_a_folder_is_shared_moved_and_deleted(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    who = Asker(stage.org, Actor.operator("test"))
    await stage.app.documents.folders.create(who, "Archiv")
    made = await stage.app.documents.folders.create(who, "Personal")
    await visitor.log_in()
    await visitor.open(f"/documents?folder={made.node_id}")
    await page.get_by_role("link", name="Rename, move").click()
    await page.get_by_role("button", name="Add entry").click()
    await page.get_by_label("User or API key", exact=True).fill("user:anna")
    await page.get_by_label("Access level", exact=True).select_option("Read and write")
    await page.locator("#grants-reason").fill("pay slips")
    await page.get_by_role("button", name="Save access").click()
    await expect(page.get_by_text("Access saved.")).to_be_visible()
    [grant] = await stage.app.documents.folders.grants(who, made.node_id)
    assert (grant.principal, grant.level) == ("user:anna", "write")
    await visitor.shoot("folder")
    await page.get_by_label("Parent folder").select_option("Archiv")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_role("heading", name="Archiv/Personal")).to_be_visible()
    visitor.expected = ("409",)
    await page.get_by_label("Parent folder").select_option("Top level")
    await page.get_by_label("Name", exact=True).fill("Archiv")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_text("A folder with this name already exists here")).to_be_visible()
    await page.reload()
    await page.get_by_role("button", name="Delete folder").click()
    await page.locator("#reason").fill("not needed")
    await visitor.shoot("folder-remove")
    await page.get_by_role("button", name="Delete", exact=True).click()
    await page.wait_for_url("**/documents?folder=*-*")
    await expect(page.get_by_role("link", name="Personal")).to_have_count(0)


async def test_a_document_is_reviewed_and_its_type_gets_a_folder(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    await stage.app.documents.folders.create(Asker(stage.org, Actor.operator("test")), "Briefe")
    await document(stage, VAGUE, "Anschreiben <i>.txt")
    await visitor.log_in()
    await visitor.open("/documents/review")
    item = page.locator(".review").filter(has_text="Anschreiben <i>.txt")
    await visitor.shoot("review")
    await expect(item).to_contain_text("Suggestion: Bank statement")
    await item.get_by_label("Document type").select_option("Letter")
    await item.get_by_role("button", name="Save").click()
    await expect(item).to_contain_text("Saved as Letter.")
    await visitor.open("/documents/review")
    await expect(item).to_have_count(0)

    await visitor.open("/documents/filing")
    await page.get_by_label("Type", exact=True).select_option("Letter")
    await page.get_by_label("Folder").select_option("Briefe")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_role("cell", name="Briefe")).to_be_visible()
    await visitor.shoot("filing")
    await page.get_by_role("button", name="Remove: Letter").click()
    await expect(page.get_by_text("No filing rules yet.")).to_be_visible()


async def test_documents_are_imported_and_exported(visitor: Visitor) -> None:
    page, stage = visitor.page, visitor.stage
    await visitor.log_in()
    await visitor.open("/documents/connectors")
    await page.get_by_label("Name").fill("Scans")
    await page.get_by_label("Secret reference").fill("geheim")
    await page.get_by_role("button", name="Connect", exact=True).click()
    await expect(page.locator("#secret:invalid")).to_be_focused()
    await page.get_by_label("Secret reference").fill("file:scans")
    await page.get_by_role("button", name="Connect", exact=True).click()
    card = page.locator(".connector")
    await expect(card).to_contain_text("Dropbox")
    await visitor.shoot("connectors")
    await card.get_by_text("Manage").click()
    await card.get_by_label("Reason").fill("pause")
    await card.get_by_role("button", name="Disable").click()
    await expect(card.locator(".chip")).to_have_text("Disabled")
    await card.get_by_text("Manage").click()
    await card.get_by_label("Reason").fill("on again")
    await card.get_by_role("button", name="Enable").click()
    await card.get_by_label("Source folder").fill("Eingang")
    await card.get_by_role("button", name="Import").click()
    await page.wait_for_url("**/jobs/*")
    await expect(page.locator("#status")).to_have_text("Failed")
    await visitor.open("/documents/connectors?lang=de")
    await visitor.shoot("importe")

    await document(stage, "Der erste Stand.")
    await visitor.open("/documents/exports?q=Stand&lang=en")
    await visitor.shoot("exports")
    await page.get_by_text("JSON Lines").click()
    await expect(page.locator("#for-excel")).to_be_hidden()
    await page.get_by_role("button", name="Export", exact=True).click()
    await page.wait_for_url("**/jobs/*")
    await page.wait_for_url("**/results/*")
    await expect(page.get_by_role("link", name="search.jsonl")).to_be_visible()
    await visitor.open("/documents/exports")
    await expect(page.get_by_role("link", name="export_search")).to_be_visible()
    assert "export_search" in await stage.jobs()
