"""Pages: security headers, URL prefixes, two languages, and no data of other orgs."""

from __future__ import annotations

import html
import re
import uuid
from importlib import resources
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.apps.analyze.modules.figures import find_figures
from duly.core.job import SUMMARY_KEYS, SYSTEM_ORG
from duly.core.principal import Principal
from duly.core.states import Status
from duly.features.api_keys.service import ApiKeys
from duly.http.application import create_app
from duly.http.options import HttpOptions
from duly.i18n import LANGUAGES, messages
from duly.pages.static_files import static
from tests.http.conftest import ANNA, caller
from tests.worker.working import working

FILES = resources.files("duly.pages")
TEMPLATES = {file.name: file.read_text(encoding="utf-8") for file in FILES.joinpath("templates").iterdir()}
MODULES = {name: text.decode() for name, text in static().files.items() if name.endswith(".js")}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture(autouse=True)
def _declared(request: pytest.FixtureRequest) -> None:
    if "app" in request.fixturenames:
        app: Duly = request.getfixturevalue("app")
        app.include_analyze()

        @app.job("report.build")
        def report(region: str, year: int = 2026) -> int:
            return year


def browser(api: FastAPI, key: str | None = None) -> httpx.AsyncClient:
    return caller(api, key, "http://localhost")


async def submit(http: httpx.AsyncClient, **more: object) -> str:
    """Submit a job; return its id."""
    body = {"job_type": "report.build", "payload": {"region": "DE"}, **more}
    response = await http.post("/v1/jobs", json=body)
    return str(response.json()["job_id"])


# --- templates, scripts and messages


def test_every_count_and_status_has_a_message() -> None:
    known = set(messages("en"))
    assert {f"count.{key}" for key in SUMMARY_KEYS} <= known
    assert {f"{kind}.{status}" for kind in ("status", "job_message") for status in Status} <= known


def test_every_reason_of_an_analysis_has_a_message_in_both_languages() -> None:
    package = resources.files("duly.apps.analyze")
    code = "".join(package.joinpath(name).read_text() for name in ("decoding.py", "sources.py"))
    reasons = set(re.findall(r'(?:UnreadableSource\(|unreadable=|b"[^"]+", )"([^"]*[ ][^"]*)"', code))
    assert "an image" in reasons
    figures = find_figures("31.02.2026, 03/04/2026, DE00 3704 0044 0532 0130 00, XX11 2222 3333 4444 55")
    reasons |= {one.problem for one in (*figures.dates.items, *figures.ibans.items) if one.problem}
    english, german = messages("en"), messages("de")
    known = {key for key in english if key.startswith("reason.")}
    assert {f"reason.{one}" for one in reasons} <= known
    assert all(english[key] != german[key] for key in known)


def test_no_script_or_style_is_inline_or_from_another_host() -> None:
    for name, text in TEMPLATES.items():
        assert not re.search(
            r"<script(?! type=\"module\" src=)|<style|\sstyle=|\son\w+=|javascript:", text
        ), name
        assert "//" not in text, name
        assert not re.search(r"(?:href|src|action)=\"/", text), f"{name}: without its prefix"
    for name, text in MODULES.items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|https?://", text
        ), name
        for other in re.findall(r"from \"\./([\w.]+)\"|^import \"\./([\w.]+)\"", text, re.M):
            assert "".join(other) in static().files, f"{name} imports {other}"
    assert "url(" not in static().files["duly.css"].decode()


async def test_static_files_are_cached_by_version(api: FastAPI) -> None:
    async with browser(api) as client:
        for name in static().files:
            response = await client.get(f"{static().path}/{name}")
            assert (response.status_code, response.headers["cache-control"]) == (
                200,
                "public, max-age=31536000, immutable",
            )
            assert response.headers["x-content-type-options"] == "nosniff"
        old = await client.get("/static/old/job.js")
        assert (old.status_code, old.headers["cache-control"]) == (200, "no-store")
        for invalid in ("texts.py", "..%2ftexts.py", "layout.html", ""):
            assert (await client.get(f"{static().path}/{invalid}")).status_code == 404


# --- access


async def test_pages_have_a_csp_and_escape_user_input(
    api: FastAPI, http: httpx.AsyncClient, key: str
) -> None:
    job = await submit(http, subject_id="<img src=x>")
    async with browser(api) as client:
        session = await client.post("/session", json={"credential": key})
        for path in ("/login", "/submit", "/jobs", f"/jobs/{job}", f"/jobs/{uuid.uuid4()}"):
            page = await client.get(path)
            assert page.headers["content-security-policy"] == POLICY, path
            assert page.headers["cache-control"] == "no-store"
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert f'name="duly-csrf" content="{session.json()["csrf_token"]}"' in page.text
            assert client.cookies["duly"] not in page.text
            assert "<img src=x" not in page.text
            assert "$" + "{" not in page.text
        assert "&lt;img src=x&gt;" in (await client.get("/jobs")).text
        assert (await client.get("/")).headers["location"] == "/submit"


async def test_sign_in_redirects_back_to_own_paths_only(api: FastAPI) -> None:
    async with browser(api) as client:
        redirect = await client.get("/jobs?status=failed&after=x%26y")
        location = urlsplit(redirect.headers["location"])
        assert (redirect.status_code, location.path) == (303, "/login")
        assert parse_qs(location.query) == {"next": ["/jobs?status=failed&after=x%26y"]}
        for requested, next_url in (
            ("/jobs?a=b", "/jobs?a=b"),
            ("//evil.example", "/submit"),
            ("/\\evil.example", "/submit"),
            ("https://evil.example", "/submit"),
            ("javascript:alert(1)", "/submit"),
            ("/\t/evil.example", "/submit"),
            ("", "/submit"),
        ):
            page = await client.get("/login", params={"next": requested})
            match = re.search(r'data-next="([^"]*)"', page.text)
            assert match
            assert html.unescape(match[1]) == next_url
        plain = await client.get("http://duly.test/login")
        assert "HTTPS required" in plain.text
        assert "credential" not in plain.text


async def test_unknown_foreign_and_expired_results_look_the_same(
    app: Duly, api: FastAPI, http: httpx.AsyncClient, stranger: httpx.AsyncClient, sql: psycopg.Connection
) -> None:
    jobs = [await submit(client) for client in (http, stranger)]
    async with working(app):
        for client, job in zip((http, stranger), jobs, strict=True):
            done = await client.get(f"/v1/jobs/{job}", headers={"prefer": "wait=30"})
            while done.json()["status"] != "completed":
                done = await client.get(f"/v1/jobs/{job}", headers={"prefer": "wait=30"})
    ours, theirs = [
        (await client.get(f"/v1/jobs/{job}")).json()["result_id"]
        for client, job in zip((http, stranger), jobs, strict=True)
    ]
    assert "Not found" not in (await http.get(f"/results/{ours}")).text
    sql.execute("delete from duly.result_snapshots where job_id = %s", [jobs[0]])
    paths = [
        f"/results/{ours}",
        f"/results/{theirs}",
        f"/results/{uuid.uuid4()}",
        "/results/x",
        f"/jobs/{jobs[1]}",
    ]
    pages = [await http.get(path) for path in paths]
    assert {page.status_code for page in pages} == {404}
    assert len({page.text for page in pages}) == 1


async def test_a_missing_scope_is_explained_on_a_page(app: Duly, api: FastAPI) -> None:
    created = await ApiKeys(app).create(SYSTEM_ORG, "platform", ["platform"], actor=ANNA, reason="r")
    async with browser(api, created.text) as client:
        page = await client.get("/jobs", headers={"accept-language": "de"})
        assert page.status_code == 403
        assert "Ihr Schlüssel hat nicht die nötige Berechtigung." in page.text


async def test_the_list_of_jobs_is_filtered_and_paginated(http: httpx.AsyncClient) -> None:
    body = {"job_type": "report.build", "payload": {"region": "DE"}}
    await http.post("/v1/jobs/bulk", json={"jobs": [{**body, "subject_id": f"s-{n}"} for n in range(30)]})

    async def rows(query: str) -> tuple[set[str], str | None]:
        text = (await http.get(f"/jobs{query}")).text
        more = re.search(r'rel="next" href="([^"]+)"', text)
        return set(re.findall(r'<td class="long">([^<]*)', text)), more and html.unescape(more[1])

    first, more = await rows("?status=queued")
    assert (len(first), more is not None) == (25, True)
    last, end = await rows(str(more))
    assert (len(last), end, first & last) == (5, None, set())
    assert await rows("?status=failed") == (set(), None)
    assert (await http.get("/jobs?after=nonsense")).status_code == 422
    assert (await rows("?status=nonsense"))[0] == (await rows(""))[0]


async def _not_hidden(principal: Principal, subject: str, action: str) -> bool:
    return action == "submit" or subject != "hidden"


@pytest.mark.parametrize("options", [HttpOptions(may=_not_hidden)])
async def test_jobs_of_invisible_subjects_are_neither_listed_nor_revealed_by_filters(
    http: httpx.AsyncClient,
) -> None:
    visible = await submit(http, subject_id="shown")
    hidden = {"job_type": "report.build", "payload": {"region": "DE"}, "subject_id": "hidden"}
    await http.post("/v1/jobs/bulk", json={"jobs": [hidden] * 30})
    page = (await http.get("/jobs")).text
    assert f"/jobs/{visible}" in page, "the thirty newer jobs are skipped"
    assert 'rel="next"' not in page
    assert "hidden" not in page.partition("<tbody>")[2]
    theirs, none = [(await http.get(f"/jobs?subject_id={name}")).text for name in ("hidden", "unknown")]
    assert theirs.replace("hidden", "unknown") == none
    assert f"/jobs/{visible}" in (await http.get("/jobs?subject_id=shown")).text


# --- language and URL prefix


async def test_the_language_follows_the_query_the_cookie_and_the_accept_language_header(api: FastAPI) -> None:
    async with browser(api) as client:

        async def language(query: str = "", **headers: str) -> str:
            text = (await client.get(f"/login{query}", headers=headers)).text
            match = re.search(r'<html lang="(\w+)"', text)
            assert match
            return match[1]

        header = "accept-language"
        assert await language() == LANGUAGES[0]
        assert await language(**{header: "de-AT,de;q=0.9,en;q=0.8"}) == "de"
        assert await language(**{header: "fr, en;q=0.3, de;q=0.7"}) == "de"
        assert await language(**{header: "fr;q=nonsense,;;,"}) == "en"
        assert await language("?lang=xx", **{header: "de"}) == "de"
        assert await language("?lang=de") == "de"
        assert await language(**{header: "en"}) == "de", "the chosen language is remembered"
        text = (await client.get("/login?next=/jobs&lang=de")).text
        assert 'href="?next=%2Fjobs&amp;lang=en"' in text


@pytest.mark.parametrize("mounted", [True, False])
async def test_every_url_has_the_prefix(app: Duly, key: str, mounted: bool) -> None:
    if mounted:
        outer = FastAPI()
        outer.mount("/tools/duly", create_app(app))
        start = "/tools/duly"
    else:
        # Behind a proxy that strips the prefix.
        outer = create_app(app, HttpOptions(public_url="https://example.com/tools/duly"))
        start = ""
    async with browser(outer, key) as client:
        for path in ("/submit", "/jobs", "/login", f"/results/{uuid.uuid4()}"):
            text = (await client.get(start + path)).text
            urls = re.findall(r'(?:href|src|action)="(/[^"]*)"', text)
            assert urls
            assert all(url.startswith("/tools/duly/") for url in urls)
            assert 'name="duly-base" content="/tools/duly"' in text
    async with browser(outer) as client:
        redirect = await client.get(f"{start}/jobs")
        assert redirect.headers["location"] == "/tools/duly/login?next=%2Fjobs"
