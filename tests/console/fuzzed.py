"""Two orgs with one of every resource, with unguessable markers in them, and clients of every role."""

from __future__ import annotations

import random
import re
import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
from fastapi import FastAPI

from duly import Actor, Context, Duly, context
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.console import install
from duly.core.principal import Principal
from duly.http.application import create_app
from duly.http.options import EVERY_SUBJECT, HttpOptions
from tests.console.conftest import Person
from tests.http.conftest import key_of
from tests.http.foreign_org import UUID_TEXT, identifying_texts, lookalike
from tests.http.sample_org import SampleOrg, create_sample_org, declare
from tests.http.test_pages import POLICY
from tests.worker.working import ONE_ATTEMPT, WAIT_TIMEOUT, working

NASTY = (
    "", " ", "\0", "'", '"><script>alert(1)</script>', "%", "%s", "{0.__class__}", "${x}", "ü" * 3000, "-1",
    "0", "9" * 400, "1e309", "nan", "inf", "٣", "2026-13-45", "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
    "\ud800", "payload.a:", "payload..x:1", ":", "a:b:c", "[", '{"a":', "..", "null", "\x1b[0m", "a\r\nb: c",
    "payload.a:" + "x" * 300, "status:failed OR 1=1", "00000000-0000-0000-0000-000000000000",
)  # fmt: skip
"""Unexpected input."""
_VOLATILE = {"api_keys", "sessions"}


@dataclass(frozen=True)
class World:
    """The service, and whose things are in it."""

    app: Duly
    api: FastAPI
    mine: SampleOrg
    theirs: SampleOrg
    more: dict[str, list[str]]
    """Ids of theirs that the furniture does not have, by the names of parameters."""
    common: set[str]
    """Kinds of failures that both have."""
    closed: set[str]
    """Inaccessible subjects."""

    @property
    def ids(self) -> dict[str, list[str]]:
        """What they have, by the names of parameters."""
        org = self.theirs
        return {
            "job_id": [str(org.dead), str(org.done), str(org.waiting), *self.more["job_id"]],
            "result_id": [str(org.result)],
            "key_id": [org.key.key.key_id],
            "user_id": [org.member],
            "org_id": [str(org.org_id)],
            "endpoint_id": [str(org.webhook.endpoint.endpoint_id)],
            "message_id": [org.message],
            "notification_id": [str(org.notification)],
            "subscription_id": [str(org.subscription)],
            "template_key": [org.template],
            "name": [org.schedule],
            "fingerprint": self.more["fingerprint"],
            "document_id": self.more["document_id"],
        }

    @property
    def words(self) -> set[str]:
        """What jobs of theirs about their subject say."""
        return {self.theirs.subject, f"nothing fits {self.theirs.name}", f"saw {self.theirs.name}"}

    @property
    def secrets(self) -> set[str]:
        """The texts by which one would know that something is theirs."""
        return {*identifying_texts(self.theirs), *(one for some in self.more.values() for one in some)}

    def nobodys(self, text: str) -> str:
        """Like it in every way, with ids and words of nobody."""
        chance = random.Random(text)
        text = UUID_TEXT.sub(lambda found: lookalike(found[0], chance), text)
        text = re.sub("(?<![0-9a-f-])[0-9a-f]{16,}", lambda found: found[0][::-1], text)
        return text.replace(self.theirs.name, self.theirs.name[:2] + self.theirs.name[:1:-1])

    async def arrives(self, *scopes: str, org: uuid.UUID | None) -> Person:
        """Somebody who is logged in, or nobody; what is wrong with any answer is noticed."""
        transport = httpx.ASGITransport(self.api, raise_app_exceptions=False)
        hooks = {"response": [_check]}
        person = httpx.AsyncClient(transport=transport, base_url="http://localhost", event_hooks=hooks)
        if org is not None:
            answer = await person.post("/session", json={"credential": await key_of(self.app, org, *scopes)})
            person.headers["x-test-csrf"] = answer.json()["csrf_token"]
        return person


async def _check(answer: httpx.Response) -> None:
    """Raise if a response is a server error, or lacks a security header."""
    said = f"{answer.request.method} {answer.request.url}"
    assert answer.status_code < 500, said
    assert answer.headers["x-content-type-options"] == "nosniff", said
    assert answer.headers["referrer-policy"] == "no-referrer", said
    assert answer.headers["cache-control"] == "no-store", said
    if answer.headers.get("content-type", "").startswith("text/html"):
        policy = answer.headers["content-security-policy"]
        assert policy == POLICY, said
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy


async def made(app: Duly) -> World:
    """Both orgs, furnished, and a service that has more time than usual."""
    closed: set[str] = set()

    async def may(who: Principal, subject_id: str, action: str) -> bool:
        return subject_id not in closed and not (closed and subject_id == EVERY_SUBJECT)

    _declare(app)
    api = create_app(app, HttpOptions(requests_per_second=1e9, burst=10**9, may=may))
    install(api)
    mine, theirs = (
        await create_sample_org(app, "Acme"),
        await create_sample_org(app, f"zq{uuid.uuid4().hex[:12]}"),
    )
    more = await _plant(app, theirs)
    common = {group.fingerprint for group in await app.dead_letters.groups(mine.org_id)}
    return World(app, api, mine, theirs, more, common, closed)


def _declare(app: Duly) -> None:
    declare(app)
    app.include_documents()

    @app.job("report.leak", retry=ONE_ATTEMPT, allows_partial=True)
    async def leak(ctx: Context, word: str) -> None:
        ctx.log.warning("saw %s", word)
        ctx.progress(50, word)
        await ctx.partial({"word": word}, key="one", percent=60)
        raise ValueError(f"nothing fits {word}")


async def _plant(app: Duly, org: SampleOrg) -> dict[str, list[str]]:
    leak = app.registry.get("report.leak")
    with context(org_id=org.org_id, actor=Actor.user(f"{org.name}-user")):
        handle = await leak.options(subject_id=org.subject, metadata={"word": org.name}).enqueue(org.name)
        async with working(app):
            await handle.wait(WAIT_TIMEOUT)
    groups = await app.dead_letters.groups(org.org_id)
    content = f"Vertrag mit {org.name} über {org.subject}.".encode()

    async def pieces() -> Any:
        yield content

    who = DocumentPrincipal(org.org_id, Actor.user(f"{org.name}-user"))
    filed = await app.documents.add(who, f"{org.name}.txt", pieces(), engine=None)
    return {
        "job_id": [str(handle.job_id)],
        "fingerprint": [group.fingerprint for group in groups if group.job_type == "report.leak"],
        "document_id": [str(filed.document_id)],
    }


def state(sql: psycopg.Connection[Any], org: uuid.UUID | None = None) -> dict[str, list[str]]:
    """Every row of every table, or those that name an org; but for log-ins and when keys were used."""
    tables = sql.execute(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname like 'duly%' and c.relkind in ('r', 'p') and not c.relispartition order by 1, 2"
    ).fetchall()
    found = {}
    for schema, name in tables:
        if name not in _VOLATILE:
            rows = sql.execute(f"select to_jsonb(t)::text from {schema}.{name} t order by 1").fetchall()
            found[f"{schema}.{name}"] = [row for (row,) in rows if org is None or str(org) in row]
    return found
