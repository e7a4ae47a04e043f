"""The account page and its sessions; operators of an identity provider, and their actions in orgs."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psycopg
import pytest
from fastapi import FastAPI
from starlette.responses import Response

from duly import Duly
from duly.console import Extras, install
from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit
from duly.core.job import SYSTEM_ORG
from duly.core.principal import Scope
from duly.features.members.service import Members
from duly.http.application import create_app
from tests.console.conftest import OPERATOR, Arrives, Person, Post, words
from tests.http.conftest import ANNA, served
from tests.http.issuer import LocalIssuer, issuing
from tests.http.test_sign_in import sign_in_at_provider, trusting

HOME = "http://localhost"


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with issuing() as one:
        yield one


@pytest.fixture
def api(app: Duly, issuer: LocalIssuer, tmp_path: Path) -> FastAPI:
    """A console with a page for admins, and a change by a service."""
    tmp_path.joinpath("secret.html").write_text("<p>{{ n }}</p>")
    shown = 0

    async def page(visit: Visit) -> ConsolePage:
        nonlocal shown
        shown += 1
        return visit.page("secret.html", title="Secret", n=shown)

    async def pause(visit: Visit, form: Form) -> Response:
        await visit.service.limits.pause(visit.org_id, actor=visit.actor, reason=form.reason)
        return visit.done("frame.back", to="/secret")

    made = create_app(app, trusting(issuer))
    routes = (Show("/secret", page, Scope.ADMIN, every=0.01), Act("/pause", pause, Scope.OPERATE))
    install(made, Extras(routes, templates=tmp_path))
    return made


async def arrived(api: FastAPI) -> Person:
    """A client that signs in with the identity provider."""
    person = httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url=HOME)
    answer = await person.get(await sign_in_at_provider(person, "/console"))
    assert answer.headers["location"] == "/console"
    page = (await person.get("/console/account")).text
    person.headers["x-test-csrf"] = page.partition('name="csrf" value="')[2].partition('"')[0]
    return person


async def test_the_account_page_lists_all_sessions_and_can_end_them(
    api: FastAPI, arrives: Arrives, app: Duly, org: uuid.UUID, issuer: LocalIssuer
) -> None:
    await Members(app).set(org, "u1", "viewer", actor=ANNA, reason="hired")
    issuer.person = {"sub": "u1", "org_id": str(org)}
    here, elsewhere, other = await arrived(api), await arrived(api), await arrives(*OPERATOR)
    said = words(await here.get("/console/account"))
    assert "Signed in as u1" in said
    assert said.count("this browser") == 1
    assert said.count("UTC") == 4, "two log-ins, each with its beginning and its end"
    assert words(await other.get("/console/account")).count("UTC") == 2
    away = await Post(here)("/console/sign-out-everywhere")
    assert away.headers["location"] == "/login"
    codes = [(await person.get("/console/account")).status_code for person in (here, elsewhere, other)]
    assert codes == [303, 303, 200]


async def test_an_operator_of_the_installation_acts_in_an_org_under_their_own_name(
    api: FastAPI, app: Duly, org: uuid.UUID, issuer: LocalIssuer, sql: psycopg.Connection
) -> None:
    issuer.person = {"sub": "ops-1", "ops": True}
    operator = await arrived(api)
    assert "ops-1, operator of the installation" in words(await operator.get("/console/account"))
    home = await operator.get("/jobs")
    assert (home.status_code, home.headers["location"]) == (303, "/console"), "there is nothing for them"
    done = await Post(operator)(f"/console/pause?org={org}", reason="unpaid")
    assert (done.status_code, done.headers["location"]) == (303, f"/console/secret?org={org}")
    entry = sql.execute(
        "select org_id, actor_type, actor_id, reason from duly.audit_entries where action = 'limit.paused'"
    ).fetchall()
    assert entry == [(org, "operator", "ops-1", "unpaid")]
    assert (await Post(operator)(f"/console/pause?org={uuid.uuid4()}", reason="x")).status_code == 404
    opened = sql.execute("select org_id, actor_id from duly.audit_entries where action = 'session.opened'")
    assert opened.fetchall() == [(SYSTEM_ORG, "ops-1")]


async def test_an_open_page_ends_when_the_right_to_it_is_lost(
    api: FastAPI, app: Duly, org: uuid.UUID, issuer: LocalIssuer
) -> None:
    await Members(app).set(org, "u1", "admin", actor=ANNA, reason="hired")
    issuer.person = {"sub": "u1", "org_id": str(org)}
    admin = await arrived(api)
    headers = {"accept": "text/event-stream", "cookie": f"duly={admin.cookies['duly']}"}
    async with served(api) as url, httpx.AsyncClient(base_url=url, headers=headers) as browser:
        async with browser.stream("GET", "/console/secret") as stream:
            pages = (json.loads(x[6:]) async for x in stream.aiter_lines() if x.startswith("data: "))
            assert await anext(pages) != await anext(pages)
            await Members(app).set(org, "u1", "operator", actor=ANNA, reason="enough")
            left = [page async for page in pages]
        assert len(left) < 50
        assert (await browser.get("/console/secret")).status_code == 403
        assert (await browser.get("/console/account", headers={"accept": "text/html"})).status_code == 200
