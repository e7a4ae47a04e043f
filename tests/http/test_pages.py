"""The pages: safe to open, the same under a prefix, in two languages, silent about what is not theirs."""

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
from tests.http.conftest import ANNA
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
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


async def ask(http: httpx.AsyncClient, **more: object) -> str:
    """A job; its id."""
    body = {"job_type": "report.build", "payload": {"region": "DE"}, **more}
    answer = await http.post("/v1/jobs", json=body)
    return str(answer.json()["job_id"])


# --- what they are made of


def test_every_count_and_status_has_a_message() -> None:
    known = set(messages("en"))
    assert {f"count.{key}" for key in SUMMARY_KEYS} <= known
    assert {f"{kind}.{status}" for kind in ("status", "job_message") for status in Status} <= known


def test_every_reason_of_an_analysis_is_said_in_both_languages() -> None:
    package = resources.files("duly.apps.analyze")
    code = "".join(package.joinpath(name).read_text() for name in ("decoding.py", "sources.py"))
    given = set(re.findall(r'(?:UnreadableSource\(|unreadable=|b"[^"]+", )"([^"]*[ ][^"]*)"', code))
    assert "an image" in given
    found = find_figures("31.02.2026, 03/04/2026, DE00 3704 0044 0532 0130 00, XX11 2222 3333 4444 55")
    given |= {one.problem for one in (*found.dates.items, *found.ibans.items) if one.problem}
    english, german = messages("en"), messages("de")
    known = {key for key in english if key.startswith("reason.")}
    assert {f"reason.{one}" for one in given} <= known
    assert all(english[key] != german[key] for key in known)


def test_nothing_is_inline_and_nothing_is_from_elsewhere() -> None:
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


async def test_files_are_kept_for_long_under_their_version(api: FastAPI) -> None:
    async with browser(api) as client:
        for name in static().files:
            found = await client.get(f"{static().path}/{name}")
            assert (found.status_code, found.headers["cache-control"]) == (
                200,
                "public, max-age=31536000, immutable",
            )
            assert found.headers["x-content-type-options"] == "nosniff"
        old = await client.get("/static/old/job.js")
        assert (old.status_code, old.headers["cache-control"]) == (200, "no-store")
        for wrong in ("texts.py", "..%2ftexts.py", "layout.html", ""):
            assert (await client.get(f"{static().path}/{wrong}")).status_code == 404


# --- who sees what


async def test_pages_are_safe_to_open(api: FastAPI, http: httpx.AsyncClient, key: str) -> None:
    job = await ask(http, subject_id="<img src=x>")
    async with browser(api) as client:
        logged_in = await client.post("/session", json={"credential": key})
        for path in ("/login", "/submit", "/jobs", f"/jobs/{job}", f"/jobs/{uuid.uuid4()}"):
            answer = await client.get(path)
            assert answer.headers["content-security-policy"] == POLICY, path
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert f'name="duly-csrf" content="{logged_in.json()["csrf_token"]}"' in answer.text
            assert client.cookies["duly"] not in answer.text
            assert "<img src=x" not in answer.text
            assert "$" + "{" not in answer.text
        assert "&lt;img src=x&gt;" in (await client.get("/jobs")).text
        assert (await client.get("/")).headers["location"] == "/submit"


async def test_the_way_to_the_log_in_leads_back_and_nowhere_else(api: FastAPI) -> None:
    async with browser(api) as client:
        away = await client.get("/jobs?status=failed&after=x%26y")
        place = urlsplit(away.headers["location"])
        assert (away.status_code, place.path) == (303, "/login")
        assert parse_qs(place.query) == {"next": ["/jobs?status=failed&after=x%26y"]}
        for given, kept in (
            ("/jobs?a=b", "/jobs?a=b"),
            ("//evil.example", "/submit"),
            ("/\\evil.example", "/submit"),
            ("https://evil.example", "/submit"),
            ("javascript:alert(1)", "/submit"),
            ("/\t/evil.example", "/submit"),
            ("", "/submit"),
        ):
            page = await client.get("/login", params={"next": given})
            found = re.search(r'data-next="([^"]*)"', page.text)
            assert found
            assert html.unescape(found[1]) == kept
        plain = await client.get("http://duly.test/login")
        assert "HTTPS required" in plain.text
        assert "credential" not in plain.text


async def test_what_is_unknown_foreign_or_over_looks_the_same(
    app: Duly, api: FastAPI, http: httpx.AsyncClient, stranger: httpx.AsyncClient, sql: psycopg.Connection
) -> None:
    jobs = [await ask(client) for client in (http, stranger)]
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
    answers = [await http.get(path) for path in paths]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.text for answer in answers}) == 1


async def test_who_may_not_is_told_so_on_a_page(app: Duly, api: FastAPI) -> None:
    made = await ApiKeys(app).create(SYSTEM_ORG, "platform", ["platform"], actor=ANNA, reason="r")
    async with browser(api, made.text) as client:
        answer = await client.get("/jobs", headers={"accept-language": "de"})
        assert answer.status_code == 403
        assert "Ihr Schlüssel hat nicht die nötige Berechtigung." in answer.text


async def test_the_list_has_its_filter_and_its_pages(http: httpx.AsyncClient) -> None:
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


async def _not_hidden(who: Principal, subject: str, action: str) -> bool:
    return action == "submit" or subject != "hidden"


@pytest.mark.parametrize("options", [HttpOptions(may=_not_hidden)])
async def test_what_they_may_not_see_neither_fills_the_list_nor_shows_by_its_filter(
    http: httpx.AsyncClient,
) -> None:
    shown = await ask(http, subject_id="shown")
    hidden = {"job_type": "report.build", "payload": {"region": "DE"}, "subject_id": "hidden"}
    await http.post("/v1/jobs/bulk", json={"jobs": [hidden] * 30})
    page = (await http.get("/jobs")).text
    assert f"/jobs/{shown}" in page, "the thirty before it are passed over"
    assert 'rel="next"' not in page
    assert "hidden" not in page.partition("<tbody>")[2]
    theirs, none = [(await http.get(f"/jobs?subject_id={name}")).text for name in ("hidden", "nobody")]
    assert theirs.replace("hidden", "nobody") == none
    assert f"/jobs/{shown}" in (await http.get("/jobs?subject_id=shown")).text


# --- where and how


async def test_the_language_is_the_visitors(api: FastAPI) -> None:
    async with browser(api) as client:

        async def language(query: str = "", **headers: str) -> str:
            text = (await client.get(f"/login{query}", headers=headers)).text
            found = re.search(r'<html lang="(\w+)"', text)
            assert found
            return found[1]

        accepting = "accept-language"
        assert await language() == LANGUAGES[0]
        assert await language(**{accepting: "de-AT,de;q=0.9,en;q=0.8"}) == "de"
        assert await language(**{accepting: "fr, en;q=0.3, de;q=0.7"}) == "de"
        assert await language(**{accepting: "fr;q=nonsense,;;,"}) == "en"
        assert await language("?lang=xx", **{accepting: "de"}) == "de"
        assert await language("?lang=de") == "de"
        assert await language(**{accepting: "en"}) == "de", "what was chosen stays"
        text = (await client.get("/login?next=/jobs&lang=de")).text
        assert 'href="?next=%2Fjobs&amp;lang=en"' in text


@pytest.mark.parametrize("mounted", [True, False])
async def test_under_a_prefix_every_path_has_it(app: Duly, key: str, mounted: bool) -> None:
    if mounted:
        outer = FastAPI()
        outer.mount("/tools/duly", create_app(app))
        start = "/tools/duly"
    else:
        # Behind a proxy that takes the prefix off.
        outer = create_app(app, HttpOptions(public_url="https://example.com/tools/duly"))
        start = ""
    async with browser(outer, key) as client:
        for path in ("/submit", "/jobs", "/login", f"/results/{uuid.uuid4()}"):
            text = (await client.get(start + path)).text
            places = re.findall(r'(?:href|src|action)="(/[^"]*)"', text)
            assert places
            assert all(place.startswith("/tools/duly/") for place in places)
            assert 'name="duly-base" content="/tools/duly"' in text
    async with browser(outer) as client:
        away = await client.get(f"{start}/jobs")
        assert away.headers["location"] == "/tools/duly/login?next=%2Fjobs"
