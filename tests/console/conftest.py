"""The service with its console in this process, and signed-in clients of every role."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from html import unescape

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.console import install
from duly.core.job import SYSTEM_ORG
from duly.http.application import create_app
from duly.http.options import HttpOptions
from tests.http.conftest import key_of

VIEWER, OPERATOR = ("jobs:read",), ("jobs:read", "jobs:write", "operate")
ADMIN = (*OPERATOR, "admin")
PLATFORM = ("platform",)
Person = httpx.AsyncClient
Arrives = Callable[..., Awaitable[Person]]


class Post:
    """Sends the forms of a page as a browser would."""

    def __init__(self, person: Person) -> None:
        self._person = person

    async def __call__(self, path: str, **fields: object) -> httpx.Response:
        """Send a form there, with the proof that one of our pages has sent it."""
        sent = {"csrf": self._person.headers["x-test-csrf"], **fields}
        return await self._person.post(path, data=sent)


@pytest.fixture
def options() -> HttpOptions:
    """The options of the service; a test may override them."""
    return HttpOptions()


@pytest.fixture
def api(app: Duly, options: HttpOptions) -> FastAPI:
    made = create_app(app, options)
    install(made)
    return made


@pytest.fixture
async def arrives(app: Duly, api: FastAPI, org: uuid.UUID) -> AsyncIterator[Arrives]:
    """`await arrives(*scopes, org=…)`: a client that has signed in with a key of these scopes."""
    people: list[Person] = []

    async def arrive(*scopes: str, org: uuid.UUID = org) -> Person:
        transport = httpx.ASGITransport(api, raise_app_exceptions=False)
        person = httpx.AsyncClient(transport=transport, base_url="http://localhost")
        people.append(person)
        answer = await person.post("/session", json={"credential": await key_of(app, org, *scopes)})
        assert answer.status_code == 201, answer.text
        person.headers["x-test-csrf"] = answer.json()["csrf_token"]
        return person

    yield arrive
    for person in people:
        await person.aclose()


@pytest.fixture
async def viewer(arrives: Arrives) -> Person:
    return await arrives(*VIEWER)


@pytest.fixture
async def operator(arrives: Arrives) -> Person:
    return await arrives(*OPERATOR)


@pytest.fixture
async def admin(arrives: Arrives) -> Person:
    return await arrives(*ADMIN)


@pytest.fixture
async def platform(arrives: Arrives) -> Person:
    """A platform operator."""
    return await arrives(*PLATFORM, org=SYSTEM_ORG)


def words(answer: httpx.Response) -> str:
    """Return the text of a page, without markup."""
    body = answer.text.partition('<main id="main"')[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
