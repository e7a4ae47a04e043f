"""The pages of the audit trail and of documents."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.schema import SCHEMA
from duly.features.audit.sealer import Sealer
from duly.testing import DatabaseCluster, FreshDatabase
from tests.apps.documents.stage import add
from tests.console.conftest import Arrives, Person, Post, words
from tests.db.open_transactions import wait_for_transactions
from tests.worker.working import WAIT_TIMEOUT, settle_attempts, working


@pytest.fixture
def fresh(cluster: DatabaseCluster) -> Iterator[FreshDatabase]:
    with cluster.fresh(schemas=[SCHEMA]) as made:
        yield made


@pytest.fixture
def app(app: Duly) -> Duly:
    app.include_documents()
    return app


def entries(page: str) -> int:
    return len(re.findall(r'id="entry-', page))


async def test_the_audit_trail_is_filtered_by_actor_action_target_and_time(
    app: Duly, org: uuid.UUID, admin: Person, operator: Person
) -> None:
    for n in range(55):
        await app.members.set(org, f"u{n}", "viewer", actor=Actor.operator("otto"), reason=f"<b>{n}</b>")
    first = await admin.get("/console/audit?actor=operator:otto")
    assert entries(first.text) == 50
    assert "<b>54</b>" in words(first)
    older = re.search(r'rel="next" href="([^"]+)"', first.text)
    assert older
    second = await admin.get(f"/console/audit{older[1].replace('&amp;', '&')}")
    assert entries(second.text) == 5
    assert entries((await admin.get("/console/audit?actor=otto&target=u7")).text) == 1
    assert entries((await admin.get("/console/audit?action=member&until=2020-01-01T00:00")).text) == 0
    assert entries((await admin.get("/console/audit?action=key&since=2020-01-01T00:00")).text) == 2
    assert (await admin.get("/console/audit?since=yesterday")).status_code == 422
    assert (await operator.get("/console/audit")).status_code == 403


async def test_a_job_verifies_the_audit_trail_and_the_page_shows_the_report(
    app: Duly, org: uuid.UUID, admin: Person, operator: Person, arrives: Arrives, sql: psycopg.Connection[Any]
) -> None:
    wait_for_transactions(sql)
    await Sealer(app).once()
    assert (await Post(operator)("/console/audit/verify")).status_code == 403
    assert (await Post(admin)("/console/audit/verify", expect="x")).status_code == 422

    async def verified() -> str:
        begun = await Post(admin)("/console/audit/verify", expect="")
        place = begun.headers["location"]
        assert "<progress" in (await admin.get(place)).text
        async with working(app):
            await app.handle(place.partition("=")[2], org_id=org).wait(WAIT_TIMEOUT)
        stranger = await arrives("admin", org=await _other(app))
        assert (await stranger.get(place)).status_code == 404
        return words(await admin.get(place))

    assert re.search(r"Verified: all \d+ sealed entries are unmodified\.", await verified())
    sql.execute("update duly.audit_entries set actor_id = 'eve' where org_id = %s", [org])
    broken = await verified()
    assert "The audit trail was modified after it was sealed." in broken
    assert "entry_changed" in broken
    assert (await admin.get(f"/console/audit?verification={uuid.uuid4()}")).status_code == 404


async def _other(app: Duly) -> uuid.UUID:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    return other


async def test_the_documents_page_shows_figures_and_links_to_the_customer_pages(
    app: Duly, org: uuid.UUID, viewer: Person, platform: Person
) -> None:
    anna = DocumentPrincipal(org, Actor.user("anna"))
    await add(app, anna, b"%PDF-1.7 and no more", "torn <b>.pdf", engine="fast")
    await add(app, anna, "zzz qqq", "words.txt", engine="fast")
    waiting = words(await viewer.get("/console/documents"))
    assert "Extracting 2 " in waiting
    await settle_attempts(app, 2)
    shown = await viewer.get("/console/documents")
    said = words(shown)
    assert "Needs review 1 Review Extracting 0 Failed (7 days) 1" in said
    assert "2 of 1 000 000" in said
    assert "torn <b>.pdf Failed fast" in said
    assert "document.broken" in said
    for place in ('action="/documents/search"', 'href="/documents/review"'):
        assert place in shown.text
    assert "/console" in (await viewer.get("/documents/search?q=zzz")).text, "it leads back"
    elsewhere = await platform.get(f"/console/documents?org={org}")
    assert "torn <b>.pdf Failed fast" in words(elsewhere)
    assert "/documents/review" not in elsewhere.text, "those pages show them their own org's"
