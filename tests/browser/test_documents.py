"""Documents: uploaded, extracted, confirmed, found, deleted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.apps.documents.files import pdf
from tests.browser.stage import Stage, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="module")
INVOICE = (
    "Rechnung Nr. 4711\nRechnungsdatum: 3. Mai 2026\nNordwind GmbH, Kiel <img src=x onerror=alert(1)>\n"
    "Leistungszeitraum: April 2026\nWartung der Heizungsanlage im Treppenhaus\n"
    "Nettobetrag 1.000,00 EUR, zzgl. 19 % MwSt\nGesamtbetrag 1.190,00 EUR, zahlbar bis 17. Mai 2026"
)
TERMS = (
    "Die Gewährleistung beträgt zwei Jahre.\nBeanstandungen an der Heizungsanlage melden Sie dem Hausmeister."
)
PAGES = [INVOICE, None, TERMS]


@asynccontextmanager
async def held(stage: Stage) -> AsyncIterator[None]:
    """Documents are read, but nothing that was read is published yet."""
    async with stage.app.tenant_session(stage.org) as conn:
        await conn.execute("select documents.search_tag()")
        yield


def files(folder: Path) -> list[Path]:
    """An invoice, the same once more, one that goes in parts, and one that is empty."""
    contents = {
        "Rechnung <b>.pdf": pdf(PAGES),
        "Kopie.pdf": pdf(PAGES),
        "large.bin": os.urandom(9 * 2**20),
        "empty.txt": b"",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


async def test_a_file_is_uploaded_extracted_confirmed_and_found(visitor: Visitor, tmp_path: Path) -> None:
    page, stage = visitor.page, visitor.stage
    await visitor.log_in()
    await page.get_by_role("link", name="Documents").click()
    await expect(page.get_by_text("No documents yet.")).to_be_visible()
    await page.get_by_label("New folder").fill("Eingang 2026")
    await page.get_by_role("button", name="Create").click()
    await page.wait_for_url("**/documents?folder=*-*")
    made = await asyncio.to_thread(files, tmp_path)

    async with held(stage):
        await page.get_by_label("Choose files or drop").set_input_files(made)
        rows = page.get_by_role("list", name="Uploads").get_by_role("listitem")
        for n, said in enumerate(
            ("uploaded; text is being extracted", "already exists", "uploaded; text", "is empty")
        ):
            await expect(rows.nth(n)).to_contain_text(said)
        await expect(page.locator("#uploaded")).to_have_text("New: 2. Already existing: 1. Failed: 1.")
        await visitor.shoot("documents-uploaded")
        await rows.nth(0).get_by_role("link", name="Rechnung <b>.pdf").click()
        live = page.locator("#live")
        for heading in ("Page 1", "Page 2", "Page 3"):
            await expect(live.get_by_role("heading", name=heading)).to_be_visible()
        await expect(live).to_contain_text("image only, needs OCR")
        await visitor.shoot("document-live")
    await expect(page.locator("#status")).to_have_text("Needs OCR")
    await expect(live).to_be_hidden()
    await expect(page.locator("#pictures")).to_contain_text("not searchable yet: 2.")
    await expect(page.locator("#page-1")).to_contain_text("onerror=alert(1)")
    await expect(page.locator("img[src=x]")).to_have_count(0)

    await expect(page.locator("#type-word")).to_have_text("Invoice")
    await page.get_by_text("Evidence").click()
    await expect(page.locator("#evidence li").first).to_be_visible()
    await visitor.shoot("document-read")
    await page.get_by_role("button", name="Confirm: Invoice").click()
    await expect(page.locator("#type-state")).to_have_text("Confirmed")
    await page.get_by_label("Change type").select_option("Reminder")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#type-word")).to_have_text("Reminder")
    await _agreed(visitor)
    await _found(visitor)


async def _agreed(visitor: Visitor) -> None:
    """Nothing is sent to another service without consent; the page shows the cost."""
    page = visitor.page
    await page.get_by_text("Extract again").click()
    await page.get_by_text("Unstructured, thorough").click()
    await expect(page.locator("#estimate")).to_have_text("Estimated cost for 3 pages: 3 ct.")
    await page.get_by_role("button", name="Extract text", exact=True).click()
    await expect(page.locator("#read-problem")).to_contain_text("consent is required")
    await visitor.shoot("document-consent")
    await page.get_by_label("I agree that the file is sent").check()
    await page.get_by_role("button", name="Extract text", exact=True).click()
    await expect(page.locator("#failure")).to_have_text(
        "No external service is configured. Nothing was sent."
    )
    await expect(page.locator("#page-1")).to_contain_text("Rechnung Nr. 4711")


async def _found(visitor: Visitor) -> None:
    """By a mistyped word, on the page that has it; deleted, it is found no more."""
    page = visitor.page
    await visitor.open("/documents")
    await page.get_by_label("Search documents").fill("Hausmeistr Gewährleistung")
    await page.get_by_role("button", name="Search").click()
    hit = page.locator(".hit").first
    await expect(hit.locator("mark").filter(has_text="Hausmeister")).to_be_visible()
    await expect(hit).to_contain_text("Page 3")
    await expect(page.get_by_text("Searched instead for:")).to_be_visible()
    await visitor.shoot("search")
    await hit.get_by_role("link").click()
    await expect(page.locator("#page-3")).to_be_focused()
    await visitor.open("/documents/search?q=Heizungsanlage&lang=de")
    await expect(page.get_by_role("heading", name="Suche")).to_be_visible()
    await visitor.shoot("suche")
    await page.locator(".hit").first.get_by_role("link").click()
    await expect(page.locator("#type-word")).to_have_text("Mahnung")
    await visitor.shoot("dokument")
    await page.get_by_role("button", name="Dokument löschen").click()
    await page.get_by_label("Grund").fill("doppelt")
    await visitor.shoot("dokument-loeschen")
    await page.get_by_role("button", name="Löschen", exact=True).click()
    await page.wait_for_url("**/documents")
    await expect(page.get_by_role("link", name="large.bin")).to_be_visible()
    await visitor.shoot("dokumente")
    await visitor.open("/documents/search?q=Heizungsanlage&lang=en")
    await expect(page.get_by_text("Nothing found.")).to_be_visible()
