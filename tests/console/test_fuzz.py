"""Whoever asks, and whatever they ask for: nobody sees or changes what is not theirs, and nothing breaks.

Pages and changes are found in the application, and what they ask for is noted while they do: what is added
later is tried as well.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import AsyncIterator, Iterator
from itertools import cycle, islice, product
from urllib.parse import quote, unquote_plus, urlencode

import httpx
import psycopg
import pytest
import pytest_asyncio
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from duly import Duly
from duly.apps.documents.schema import SCHEMA
from duly.console.render import FLASH_COOKIE
from duly.console.routing import Act, Show
from duly.core.job import SYSTEM_ORG
from duly.core.principal import Scope
from duly.testing import DatabaseCluster, FreshDatabase
from tests.console.conftest import ADMIN, OPERATOR, PLATFORM, VIEWER, Person
from tests.console.fuzzed import NASTY, World, made, state
from tests.console.strolling import Names, declared, filled, stroll
from tests.http.conftest import served
from tests.http.test_tenants import appearance

FOR_EVERYBODY = {"/sign-out", "/sign-out-everywhere"}
"""Changes that need no right."""
ROLES = {"viewer": VIEWER, "operator": OPERATOR, "admin": ADMIN}
STREAM = {"accept": "text/event-stream"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
EACH = min(int(os.environ.get("DULY_CONTRACT_EXAMPLES", "2")), len(NASTY))
"""Nasty texts that each name is tried with; the next one gets others."""
Fields = tuple[tuple[str, str], ...]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def fresh(cluster: DatabaseCluster) -> Iterator[FreshDatabase]:
    with cluster.fresh(schemas=[SCHEMA]) as one:
        yield one


@pytest.fixture(scope="module")
def names() -> Iterator[Names]:
    with pytest.MonkeyPatch.context() as patch:
        yield Names(patch)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    fresh: FreshDatabase, names: Names, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    pooled = {"database_direct_url": fresh.direct_url} if fresh.url != fresh.direct_url else {}
    blobs = str(tmp_path_factory.mktemp("blobs"))
    app = Duly(database_url=fresh.url, blobs_url=blobs, maintenance=False, **pooled)
    yield await made(app)
    await app.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def owner(world: World, names: Names) -> Person:
    """An admin of theirs, who has been everywhere and tried every form with nothing in it."""
    person = await world.arrives(*ADMIN, org=world.theirs.org_id)
    await stroll(person)
    for act in acts(world.api):
        await sent(person, next(filled(act, world.ids)))
    return person


def shows(api: FastAPI) -> list[Show]:
    return [one for one in declared(api) if isinstance(one, Show)]


def acts(api: FastAPI) -> list[Act]:
    return [one for one in declared(api) if isinstance(one, Act) and one.path not in FOR_EVERYBODY]


async def sent(person: Person, place: str, *fields: tuple[str, str]) -> httpx.Response:
    """A form with its proof."""
    proof = ("csrf", person.headers["x-test-csrf"])
    return await person.post(place, content=urlencode([*fields, proof], errors="surrogatepass"), headers=FORM)


class Stranger:
    """Somebody of another org who asks for what is theirs and for what is nobody's, and compares."""

    def __init__(self, world: World, person: Person) -> None:
        self._world = world
        self._person = person
        self.unknown = 0

    async def compare(self, place: str, fields: Fields | None = None) -> None:
        """Both must look the same, and tell nothing of theirs that was not said in the request."""
        theirs = await self._ask(place, fields)
        nobodys = self._world.nobodys
        hidden = None if fields is None else tuple((name, nobodys(text)) for name, text in fields)
        other = await self._ask(nobodys(place), hidden)
        # A place in a list is one's own, whoever had it before; and so are kinds of failures that both know.
        if "after=" not in place and not [one for one in self._world.common if one in f"{place} {fields}"]:
            assert theirs == other, place

    async def _ask(self, place: str, fields: Fields | None) -> object:
        if FLASH_COOKIE in self._person.cookies:  # of a change of one's own
            self._person.cookies.delete(FLASH_COOKIE)
        if fields is None:
            answer = await self._person.get(place)
        else:
            answer = await sent(self._person, place, *fields)
        self.unknown += answer.status_code == 404
        asked = unquote_plus(f"{place} {fields}")
        # What is to be said after a change is packed; it is read as the next page would say it.
        said = base64.urlsafe_b64decode(answer.cookies.get(FLASH_COOKIE, "")).decode()
        for secret in self._world.secrets:
            told = secret in answer.text or secret in f"{answer.headers} {said}"
            assert secret in asked or not told, f"{asked} tells {secret}"
        words = {piece for piece in re.split(r"[^\w-]+", asked) if len(piece) > 7}
        status, headers, text = appearance(answer, words)
        for word in words:
            said = said.replace(word, "I")
        return status, {name: value for name, value in headers.items() if name != "set-cookie"}, text, said


async def test_an_org_neither_sees_nor_changes_anything_of_another(
    world: World, names: Names, owner: Person, sql: psycopg.Connection
) -> None:
    stranger = Stranger(world, await world.arrives(*ADMIN, org=world.mine.org_id))
    seen = await stroll(owner)
    assert len(seen.links) > 1
    pages = {show: list(filled(show, world.ids)) for show in shows(world.api)}
    before = state(sql, world.theirs.org_id)
    assert before
    for place in sorted({*seen.links, *(place for places in pages.values() for place in places)}):
        await stranger.compare(place)
        await stranger.compare(f"{place}{'&' if '?' in place else '?'}org={world.theirs.org_id}")
    for value in (str(world.theirs.dead), world.theirs.name, *world.more["fingerprint"]):
        for places in pages.values():
            await stranger.compare(places[0] + names.query(value))
    for form in sorted(seen.forms, key=str):
        await stranger.compare(form.action, form.fields)
    for act in acts(world.api):
        for place in filled(act, world.ids):
            fields = (("reason", "r"), ("org", str(world.theirs.org_id)))
            await stranger.compare(place, fields)
    assert state(sql, world.theirs.org_id) == before
    assert stranger.unknown or not [show for show in pages if "{" in show.path]


async def test_no_page_shows_anything_about_an_inaccessible_subject(
    world: World, owner: Person, sql: psycopg.Connection
) -> None:
    assert await _telling(world, owner) or "/jobs/{job_id}" not in {show.path for show in shows(world.api)}
    before = state(sql)
    world.closed.add(world.theirs.subject)
    assert await _telling(world, owner) == set(), "all of it is about that subject"
    for act in acts(world.api):
        if "{job_id}" in act.path:
            for place in filled(act, world.ids):
                answer = await sent(owner, place, ("reason", "r"))
                assert answer.status_code in (403, 404, 422), place
    assert state(sql) == before
    world.closed.clear()


async def _telling(world: World, person: Person) -> set[str]:
    """The pages that tell of their subject, although it was not said to them."""
    found = await stroll(person)
    places = {*found.links, *(place for show in shows(world.api) for place in filled(show, world.ids))}
    told = set()
    for place in places:
        text = (await person.get(place)).text
        told |= {place for word in world.words if word in text and word not in place}
    return told


async def test_a_principal_without_the_scope_sees_and_changes_nothing(
    world: World, sql: psycopg.Connection
) -> None:
    people = {name: await world.arrives(*may, org=world.theirs.org_id) for name, may in ROLES.items()}
    before = state(sql)
    for act in acts(world.api):
        assert act.scope not in (None, Scope.READ), f"{act.path} is for everybody who may look"
        for (name, person), place in product(people.items(), filled(act, world.ids)):
            if act.scope not in ROLES[name]:
                answer = await sent(person, place, ("reason", "r"))
                assert answer.status_code == 403, (name, place)
    for show in shows(world.api):
        for (name, person), place in product(people.items(), filled(show, world.ids)):
            if show.scope not in ROLES[name]:
                assert (await person.get(place)).status_code == 403, (name, place)
                assert (await person.get(place, headers=STREAM)).status_code == 403, (name, place)
    assert state(sql) == before


async def test_a_request_without_session_learns_nothing(world: World) -> None:
    nobody = await world.arrives(org=None)
    for route in declared(world.api):
        for place in filled(route, world.ids):
            if isinstance(route, Act):
                answers = [await nobody.post(place, data={"reason": "r", "csrf": "x"})]
            else:
                answers = [await nobody.get(place, headers=headers) for headers in ({}, STREAM)]
            for answer in answers:
                assert (answer.status_code, answer.content) == (303, b""), place
                assert answer.headers["location"].startswith("/login?next="), place


async def test_a_forged_form_changes_nothing(world: World, sql: psycopg.Connection) -> None:
    admin = await world.arrives(*ADMIN, org=world.theirs.org_id)
    right = admin.headers["x-test-csrf"]
    before = state(sql)
    for act in (one for one in declared(world.api) if isinstance(one, Act)):
        for place in filled(act, world.ids):
            for csrf, site in (
                (None, "none"),
                (right[::-1], "none"),
                (right, "cross-site"),
                (right, "same-site"),
            ):
                fields = {"reason": "r", **({} if csrf is None else {"csrf": csrf})}
                answer = await admin.post(place, data=fields, headers={"sec-fetch-site": site})
                assert (answer.status_code, answer.content) == (303, b""), (place, csrf, site)
                assert answer.headers["location"].startswith("/login?next="), (place, csrf, site)
            plain = await admin.post(place, content="{}", headers={"content-type": "text/plain"})
            assert plain.status_code == 415, place
    assert state(sql) == before
    assert (await admin.get("/console")).status_code == 200


async def test_an_event_stream_shows_nothing_of_other_orgs(world: World) -> None:
    stranger = await world.arrives(*ADMIN, org=world.mine.org_id)
    headers = {**STREAM, "cookie": f"duly={stranger.cookies['duly']}"}
    async with served(world.api) as url, httpx.AsyncClient(base_url=url, headers=headers) as browser:
        for show in shows(world.api):
            for place in list(filled(show, world.ids))[:2]:
                await _first_look(browser, f"{place}?org={world.theirs.org_id}", world.secrets)


async def _first_look(browser: httpx.AsyncClient, place: str, secrets: set[str]) -> None:
    async with browser.stream("GET", place) as stream:
        if not stream.headers["content-type"].startswith(STREAM["accept"]):
            assert stream.status_code in (403, 404, 422), place
            return
        assert stream.headers["cache-control"] == "no-store"
        page = await anext(line async for line in stream.aiter_lines() if line.startswith("data:"))
        assert not [one for one in secrets if one in page and one not in place], place


async def test_no_input_breaks_a_page(world: World, names: Names, owner: Person) -> None:
    people = {False: owner, True: await world.arrives(*PLATFORM, org=SYSTEM_ORG)}
    nasty = cycle(NASTY)
    for route in [*shows(world.api), *acts(world.api)]:
        person = people[route.scope is Scope.PLATFORM]
        place = next(filled(route, world.ids))
        for number in range(EACH):
            raw = quote(next(nasty).encode("utf-8", "surrogatepass"), safe="") or "%20"
            wrong = re.sub(r"\{[^}]*\}", raw, f"/console{route.path}")
            many = {name: next(nasty) for name in names.filled if number or name != "reason"}
            await (person.get(wrong) if isinstance(route, Show) else sent(person, wrong, *many.items()))
            if isinstance(route, Act):
                await sent(person, place, *many.items())
        for name in sorted(names.asked_by(route)):
            for text in islice(nasty, EACH):
                asked = urlencode({name: text}, errors="surrogatepass")
                await (
                    person.get(f"{place}?{asked}")
                    if isinstance(route, Show)
                    else sent(person, f"{place}?{asked}")
                )
    for said in (
        b"[" * 5000,
        b"x",
        b'["frame.at_least", {"n": "{0}"}]',
        b'["frame.at_least", {}]',
        b"[[], 1]",
    ):
        owner.cookies.set(FLASH_COOKIE, base64.urlsafe_b64encode(said).decode(), "localhost.local")
        await owner.get("/console")


TEXTS = (
    some.text(max_size=40) | some.sampled_from(NASTY) | some.integers().map(str) | some.datetimes().map(str)
)


@settings(max_examples=20 * EACH, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=some.data())
async def test_no_combination_of_parameters_breaks_a_page(
    world: World, names: Names, owner: Person, data: some.DataObject
) -> None:
    show = data.draw(some.sampled_from(shows(world.api)))
    asked = data.draw(some.dictionaries(some.sampled_from(sorted(names.asked)), TEXTS, max_size=5))
    query = urlencode(asked, errors="surrogatepass")
    await owner.get(f"{next(filled(show, world.ids))}?{query}")
