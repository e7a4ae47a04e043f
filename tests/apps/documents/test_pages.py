"""The pages of documents: for their org alone, in two languages, with all texts escaped."""

from __future__ import annotations

import html
import re
import uuid
from typing import get_args
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.apps.documents.classification.classifier import save_classification
from duly.apps.documents.classification.models import DOC_TYPES, Evidence, Verdict
from duly.apps.documents.classification.remote_classifier import ChatEndpoint
from duly.apps.documents.elements import Engine, PageState, Passage
from duly.apps.documents.engines.error_codes import CODES, WARNINGS
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.models import DocumentStatus, ExtractionStatus, Grant
from duly.apps.documents.options import DocumentOptions
from duly.apps.documents.search.index import publish
from duly.http.application import create_app
from duly.http.options import HttpOptions
from duly.i18n import messages
from tests.apps.documents.stage import add, visitor
from tests.http.conftest import ANNA, caller, key_of

HOSTILE = "<img src=x onerror=alert(1)> \"'{{ name }}${name}.txt"
READER = ("jobs:read",)


@pytest.fixture
def api(library: Duly) -> FastAPI:
    return create_app(library)


async def opened(
    api: FastAPI, app: Duly, org: uuid.UUID, *scopes: str, language: str = "en"
) -> httpx.AsyncClient:
    """Somebody with a key of their own: of no special right, if none is named."""
    client = caller(api, await key_of(app, org, *(scopes or ("jobs:read", "jobs:write"))))
    client.headers["accept-language"] = language
    return client


async def findable(
    app: Duly, who: DocumentPrincipal, text: str, name: str = "brief.txt", **how: object
) -> uuid.UUID:
    """A document with one passage."""
    made = await add(app, who, text, name, **how)
    passage = Passage(index=0, page=7, type="NarrativeText", text=text)
    async with app.tenant_session(who.org_id) as conn:
        await publish(conn, who.org_id, made.document_id, None, name, [passage])
    return made.document_id


async def said_unsure(app: Duly, who: DocumentPrincipal, document_id: uuid.UUID) -> None:
    """Somebody should look at it."""
    words = Evidence(doc_type="letter", term=HOSTILE, zone="body", page=1, text=HOSTILE, weight=1)
    verdict = Verdict(
        doc_type="other", confidence=0.1, review=True, evidence=(words,), model_version="rules-0"
    )
    async with app.tenant_session(who.org_id) as conn:
        await save_classification(conn, who, document_id, verdict)


def test_every_status_and_type_has_a_text() -> None:
    wanted = {f"doctype.{one}" for one in DOC_TYPES}
    wanted |= {f"status.{one}" for one in (*get_args(DocumentStatus), *get_args(ExtractionStatus))}
    wanted |= {f"engine.{one}" for one in get_args(Engine)}
    wanted |= {f"reason.{one}" for one in (*CODES, *WARNINGS)}
    wanted |= {f"page.{one}" for one in get_args(PageState) if one != "text"}
    assert wanted <= set(messages("en"))


async def test_pages_do_not_mention_documents_if_they_are_not_included(app: Duly, org: uuid.UUID) -> None:
    async with await opened(create_app(app), app, org) as client:
        assert (await client.get("/documents")).status_code == 404
        assert (await client.get("/documents/search")).status_code == 404
        client.cookies["duly"] = "x" * 43  # the menu is for those who are logged in
        page = (await client.get("http://localhost/jobs")).text
        assert ('id="logout"' in page, "/documents" in page) == (True, False)


async def test_names_and_texts_are_text_and_nothing_else(
    library: Duly, api: FastAPI, anna: DocumentPrincipal
) -> None:
    folder = await library.documents.folders.create(anna, HOSTILE)
    hidden = f"{HOSTILE} Wärmepumpe & <mark>so</mark>"
    document = await findable(library, anna, hidden, HOSTILE, node_id=folder.node_id)
    await library.documents.classification.set_filing(anna, "invoice", folder.node_id)
    await library.documents.change(anna, document, metadata={"note": HOSTILE})
    await said_unsure(library, anna, document)
    admin = DocumentPrincipal(anna.org_id, ANNA)
    await library.documents.connectors.create(
        admin, "dropbox", HOSTILE, "file:a", node_id=folder.node_id, account=HOSTILE
    )
    async with await opened(api, library, anna.org_id) as client:
        for path in (
            "/documents", f"/documents?folder={folder.node_id}", f"/documents/{document}",
            "/documents/search?q=Wärmepumpe", f"/documents/search?q=x&folder={folder.node_id}",
            f"/documents/folders/{folder.node_id}", "/documents/filing", "/documents/review",
            "/documents/connectors", f"/documents/exports?q={quote(HOSTILE)}&folder={folder.node_id}",
        ):  # fmt: skip
            page = await client.get(path)
            assert page.status_code == 200, path
            assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
            assert "<img src=x" not in page.text, path
            assert HOSTILE in html.unescape(page.text), path
        [place] = re.findall(
            rf'href="(/documents/{document}[^"]*)"', (await client.get("/documents/search?q=Wärmepumpe")).text
        )
        assert place.endswith("#page-7")
        found = (await client.get("/documents/search?q=Wärmepumpe")).text
        assert "<mark>Wärmepumpe</mark> &amp; &lt;mark&gt;so&lt;/mark&gt;" in found


async def test_a_hidden_folder_and_its_documents_are_not_found(
    library: Duly, api: FastAPI, anna: DocumentPrincipal
) -> None:
    folders = library.documents.folders
    closed = await folders.create(anna, "Personal")
    document = await findable(library, anna, "Gehalt von Bert", "gehalt.txt", node_id=closed.node_id)
    other = uuid.uuid4()
    await library.create_org(other, "Other")
    foreign = await add(library, visitor(other), "fremd")
    admin = DocumentPrincipal(anna.org_id, ANNA)
    await library.documents.classification.set_filing(admin, "payslip", closed.node_id)
    await said_unsure(library, anna, document)
    await library.documents.connectors.create(admin, "dropbox", "Personal", "file:a", node_id=closed.node_id)
    await folders.set_grants(admin, closed.node_id, [Grant(principal="user:bert", level="read")])
    async with await opened(api, library, anna.org_id) as client:
        for path in (
            "/documents", "/documents/search?q=Gehalt", "/documents/filing", "/documents/review",
            "/documents/connectors", "/documents/exports",
        ):  # fmt: skip
            page = (await client.get(path)).text
            assert "Personal" not in page
            assert "gehalt.txt" not in page
            assert str(closed.node_id) not in page
        paths = [
            f"/documents?folder={closed.node_id}",
            f"/documents?folder={uuid.uuid4()}",
            "/documents?folder=x",
            f"/documents/folders/{closed.node_id}",
            f"/documents/folders/{uuid.uuid4()}",
        ]
        paths += [f"/documents/{one}" for one in (document, foreign.document_id, uuid.uuid4(), "x")]
        answers = [await client.get(path) for path in paths]
        assert {answer.status_code for answer in answers} == {404}
        assert len({re.sub(r"\?folder=[^&]*&amp;", "?", answer.text) for answer in answers}) == 1


async def test_the_list_has_its_filters_and_its_pages(
    library: Duly, api: FastAPI, anna: DocumentPrincipal
) -> None:
    inner = await library.documents.folders.create(
        anna, "Kiel", (await library.documents.folders.create(anna, "Häuser")).node_id
    )
    for n in range(27):
        await add(library, anna, f"text {n}", f"brief-{n}.txt", node_id=inner.node_id if n < 26 else None)
    async with await opened(api, library, anna.org_id, language="de") as client:

        async def rows(query: str) -> tuple[set[str], str | None]:
            text = (await client.get(f"/documents{query}")).text
            more = re.search(r'rel="next" href="([^"]+)"', text)
            return set(re.findall(r">(brief-\d+.txt)<", text)), more and html.unescape(more[1])

        first, more = await rows(f"?folder={inner.node_id}&status=stored")
        last, end = await rows(str(more))
        assert (len(first), len(last), end, first & last) == (25, 1, None, set())
        assert await rows("?folder=root") == ({"brief-26.txt"}, None)
        assert await rows("?doc_type=invoice") == (set(), None)
        everything = await rows("")
        for nonsense in ("?doc_type=%00", "?doc_type=No%20Type", "?status=nonsense"):
            assert (await rows(nonsense))[0] == everything[0], nonsense
        assert (await client.get("/documents?after=nonsense")).status_code == 422
        tree = (await client.get(f"/documents?folder={inner.node_id}")).text
        assert re.search(
            r"Häuser</a><ul><li><a href=\"[^\"]+\" aria-current=\"true\">Kiel", tree.replace("\n", "")
        )
        assert "Gespeichert" in tree
        assert "Zielordner:" in tree


async def test_a_reader_is_offered_no_changes(library: Duly, api: FastAPI, anna: DocumentPrincipal) -> None:
    document = (await add(library, anna, "text")).document_id
    await said_unsure(library, anna, document)
    folder = (await library.documents.folders.create(anna, "Post")).node_id
    admin = DocumentPrincipal(anna.org_id, ANNA)
    await library.documents.connectors.create(admin, "dropbox", "Scans", "file:a")
    paths = {
        "/documents": ("upload", "new-folder"),
        f"/documents/{document}": ("change-type", "read", "delete", "change-form", "version"),
        f"/documents/folders/{folder}": ("folder-form", "grants-add"),
        "/documents/review": (f"type-{document}",),
        "/documents/filing": ("filing-form",),
        "/documents/exports": ("export-form",),
        "/documents/connectors": ("new-connector",),
    }
    async with (
        await opened(api, library, anna.org_id, *READER) as reader,
        await opened(api, library, anna.org_id) as writer,
        await opened(api, library, anna.org_id, "jobs:read", "jobs:write", "admin") as boss,
    ):
        for path, forms in paths.items():
            seen = [(await client.get(path)).text for client in (reader, writer, boss)]
            for form in forms:
                by = [f'id="{form}"' in page for page in seen]
                assert by == [False, form != "new-connector", True], (path, form)
        imports = (await reader.get("/documents/connectors")).text
        assert ("Scans" in imports, 'class="start"' in imports) == (True, False)


async def test_remote_engines_are_offered_if_the_service_is_configured(
    library: Duly, api: FastAPI, anna: DocumentPrincipal
) -> None:
    path = f"/documents/{(await add(library, anna, 'text')).document_id}"
    async with await opened(api, library, anna.org_id) as client:
        page = (await client.get(path)).text
        assert ("unstructured_hires" in page, "elsewhere-form" in page) == (False, False)
    elsewhere = DocumentOptions(
        unstructured_url="http://reader.test",
        unstructured_key="secret-1",
        classifier=ChatEndpoint("http://chat.test", "m", "secret-2"),
    )
    service = create_app(library, HttpOptions(documents=elsewhere))
    async with await opened(service, library, anna.org_id) as client:
        page = html.unescape((await client.get(path)).text)
    assert 'data-cents="{"unstructured_fast": 0.1, "unstructured_hires": 1.0}"' in page
    assert "I agree that the file is sent" in page
    assert "I agree that the beginning of the text is sent" in page
    assert "secret-" not in page


async def test_an_invalid_search_is_refused_and_long_results_have_pages(
    library: Duly, api: FastAPI, anna: DocumentPrincipal
) -> None:
    for n in range(22):
        await findable(library, anna, f"Die Heizung Nummer {n} ist warm.", f"heizung-{n}.txt")
    async with await opened(api, library, anna.org_id, language="de") as client:
        assert 'id="found"' not in (await client.get("/documents/search")).text
        for wrong in ("-heizung", "x" * 501, "%00"):
            page = await client.get(f"/documents/search?q={wrong}")
            assert (page.status_code, "Ungültige Suche:" in page.text) == (200, True), wrong
        first = (await client.get("/documents/search?q=Heizung&doc_type=%00&offset=nonsense")).text
        more = re.search(r'rel="next" href="([^"]+)"', first)
        assert more
        assert first.count('class="card hit"') == 20
        last = (await client.get(f"/documents/search{html.unescape(more[1])}")).text
        assert (last.count('class="card hit"'), "Beste Treffer" in last) == (2, True)


async def test_under_a_prefix_every_path_has_it(library: Duly, anna: DocumentPrincipal) -> None:
    document = await findable(library, anna, "Heizung")
    outer = FastAPI()
    outer.mount("/tools/duly", create_app(library))
    async with await opened(outer, library, anna.org_id) as client:
        folder = (await library.documents.folders.create(anna, "Post")).node_id
        for path in (
            "/documents", f"/documents/{document}", "/documents/search?q=Heizung", "/documents/review",
            "/documents/filing", "/documents/exports", "/documents/connectors",
            f"/documents/folders/{folder}",
        ):  # fmt: skip
            text = (await client.get(f"/tools/duly{path}")).text
            places = re.findall(r'(?:href|src|action)="(/[^"]*)"', text)
            assert places
            assert all(place.startswith("/tools/duly/") for place in places)
