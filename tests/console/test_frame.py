"""The frame of every page: sign-in, language, and messages about changes."""

from __future__ import annotations

import json
import re
import uuid
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import Response

from duly import Duly
from duly.console import Extras, install
from duly.console.form import Form
from duly.console.render import _template_folders, local_times
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit
from duly.core.errors import ContractError
from duly.core.principal import Scope
from duly.http.application import create_app
from duly.http.options import HttpOptions
from duly.pages.static_files import StaticFiles
from tests.console.conftest import Person, Post, words
from tests.http.conftest import served
from tests.http.test_pages import POLICY

TEMPLATES = {file.name: file.read_text() for folder in _template_folders() for file in folder.iterdir()}


def test_pages_have_no_inline_code_and_load_nothing_from_other_hosts() -> None:
    for name, text in TEMPLATES.items():
        assert not re.search(
            r"<script(?! type=\"module\" src=)|<style|\sstyle=|\son\w+=|javascript:", text
        ), name
        assert not re.search(r"(?:href|src|action)=\"/", text), f"{name}: without its prefix"
        assert "|safe" not in text.replace(" ", ""), name
    for name, content in StaticFiles.read(resources.files("duly.console").joinpath("static")).files.items():
        text = content.decode()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|https?://|url\(", text
        ), name


def test_utc_times_in_a_text_are_marked_up_and_the_rest_is_escaped() -> None:
    time = '<time datetime="2026-11-18T07:17:52+00:00" data-as="full">2026-11-18 07:17:52 UTC</time>'
    assert local_times("Failed at 2026-11-18 07:17:52 UTC: <b>") == f"Failed at {time}: &lt;b&gt;"


def test_numbers_have_the_separators_of_the_language() -> None:
    english, german = (Visit.number(SimpleNamespace(language=one), 1234.5, 1) for one in ("en", "de"))  # type: ignore[arg-type]
    assert (english, german) == ("1,234.5", "1.234,5")


async def test_a_visitor_without_session_signs_in_and_returns(api: FastAPI) -> None:
    transport = httpx.ASGITransport(api)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as nobody:
        answer = await nobody.get("/console?lang=de")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fconsole%3Flang%3Dde")


async def test_pages_have_security_headers_and_are_not_cached(viewer: Person) -> None:
    answer = await viewer.get("/console")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert viewer.cookies["duly"] not in answer.text
    for place in re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|svg))"', answer.text):
        assert (await viewer.get(place)).status_code == 200, place


async def test_the_language_and_the_theme_are_remembered(viewer: Person) -> None:
    assert '<html lang="de"' in (await viewer.get("/console?lang=de&theme=dark")).text
    assert '<html lang="de" data-theme="dark"' in (await viewer.get("/console")).text


async def test_only_platform_operators_can_choose_another_org(
    app: Duly, admin: Person, platform: Person
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Elsewhere")
    assert "Elsewhere" not in (await admin.get(f"/console?org={other}")).text
    assert "Elsewhere" in (await platform.get(f"/console?org={other}")).text
    assert "All orgs" in (await platform.get("/console")).text
    unknown = [await platform.get(f"/console?org={text}") for text in (uuid.uuid4(), "nonsense")]
    assert [answer.status_code for answer in unknown] == [404, 404]


async def test_platform_operators_are_redirected_to_the_console(admin: Person, platform: Person) -> None:
    assert (await platform.get("/submit")).headers["location"] == "/console"
    assert (await platform.get("/console/")).text == (await platform.get("/console")).text
    assert (await admin.get("/submit")).status_code == 200


async def test_an_unknown_path_shows_a_not_found_page(viewer: Person) -> None:
    answer = await viewer.get("/console/nowhere/at/all")
    assert answer.status_code == 404
    assert "Not found" in words(answer)


async def test_signing_out_ends_the_session(viewer: Person) -> None:
    assert (
        (await viewer.post("/console/sign-out", data={"csrf": "wrong"}))
        .headers["location"]
        .startswith("/login?")
    )
    assert (await viewer.get("/console")).status_code == 200
    token = viewer.cookies["duly"]
    assert (await Post(viewer)("/console/sign-out")).headers["location"] == "/login"
    again = await viewer.get("/console", headers={"cookie": f"duly={token}"})
    assert again.status_code == 303


@pytest.fixture
def kept() -> dict[str, str]:
    """The values of the application's page."""
    return {"value": "<i>old</i>"}


@pytest.fixture
def api(app: Duly, tmp_path: Path, kept: dict[str, str]) -> FastAPI:
    """A service whose console has an additional page and change."""
    tmp_path.joinpath("extra.html").write_text("<p id=value>{{ value }}</p>{{ form.get('value', '') }}")

    async def page(visit: Visit) -> ConsolePage:
        return visit.page("extra.html", title="Extra", value=kept["value"])

    async def act(visit: Visit, form: Form) -> Response:
        if form.text("value") == "bad":
            raise ContractError("this is <b>bad</b>", field="value", fix="say good")
        kept["value"] = form.text("value")
        return visit.done("extra.done", to="/extra", what=kept["value"])

    made = create_app(app, HttpOptions())
    routes = (Show("/extra", page, every=0.01), Act("/extra", act, Scope.OPERATE, page))
    install(made, Extras(routes, texts={"extra.done": ("Now {what}.", "Jetzt {what}.")}, templates=tmp_path))
    return made


async def test_the_message_about_a_change_is_shown_once_and_escaped(
    operator: Person, kept: dict[str, str]
) -> None:
    answer = await Post(operator)("/console/extra", value="<i>new</i>")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/extra")
    first, second = await operator.get("/console/extra"), await operator.get("/console/extra")
    assert "Now &lt;i&gt;new&lt;/i&gt;." in first.text
    assert "Now" not in second.text
    assert kept["value"] == "<i>new</i>"


async def test_a_rejected_change_shows_the_error_and_keeps_the_input(
    operator: Person, kept: dict[str, str]
) -> None:
    answer = await Post(operator)("/console/extra", value="bad")
    assert answer.status_code == 422
    assert "this is &lt;b&gt;bad&lt;/b&gt;" in answer.text
    assert "say good" in words(answer)
    assert "bad" in words(answer).rpartition("old")[2]
    assert kept["value"] == "<i>old</i>"


async def test_a_viewer_changes_nothing(viewer: Person, kept: dict[str, str]) -> None:
    answer = await Post(viewer)("/console/extra", value="new")
    assert answer.status_code == 403
    assert "Your key does not have the required permission." in words(answer)
    assert kept["value"] == "<i>old</i>"


@pytest.mark.parametrize("csrf", ["", "wrong", "ü"])
async def test_a_change_without_a_valid_csrf_token_is_rejected(
    operator: Person, kept: dict[str, str], csrf: str
) -> None:
    answer = await operator.post("/console/extra", data={"csrf": csrf, "value": "new"})
    assert answer.headers["location"].startswith("/login?")
    sent = {"csrf": operator.headers["x-test-csrf"], "value": "new"}
    cross = await operator.post("/console/extra", data=sent, headers={"sec-fetch-site": "cross-site"})
    assert cross.headers["location"].startswith("/login?")
    assert kept["value"] == "<i>old</i>"


async def test_an_open_page_is_sent_when_and_only_when_it_has_changed(
    api: FastAPI, operator: Person, kept: dict[str, str]
) -> None:
    async with served(api) as url, httpx.AsyncClient(base_url=url) as browser:
        headers = {"accept": "text/event-stream", "cookie": f"duly={operator.cookies['duly']}"}
        async with browser.stream("GET", "/console/extra", headers=headers) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            pages = (
                json.loads(line.removeprefix("data: "))
                async for line in stream.aiter_lines()
                if line.startswith("data: ")
            )
            assert "&lt;i&gt;old&lt;/i&gt;" in await anext(pages)
            kept["value"] = "new"
            assert "<p id=value>new</p>" in await anext(pages)
            await Post(operator)("/console/sign-out")
            kept["value"] = "newer"
            assert [page async for page in pages] == []
