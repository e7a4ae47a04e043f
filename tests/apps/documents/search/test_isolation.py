"""Nobody finds what is not theirs: not its text, not its count, not its words."""

from __future__ import annotations

import uuid
from uuid import UUID

import psycopg
import pytest

from duly import Duly
from duly.apps.documents.search.models import Filters
from tests.apps.documents.search.shelf import Shelf


@pytest.fixture
def others(app: Duly, sql: psycopg.Connection) -> Shelf:
    org = uuid.uuid4()
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Other')", [org])
    return Shelf(app, org)


def folder(
    sql: psycopg.Connection, org: UUID, name: str, parent: UUID | None = None, only: str | None = None
) -> UUID:
    [(node,)] = sql.execute(
        """insert into documents.nodes (org_id, parent_id, name, created_by)
           values (%s, %s, %s, 'user:u1') returning node_id""",
        [org, parent, name],
    ).fetchall()
    if only:
        sql.execute(
            """insert into documents.node_grants (org_id, node_id, principal, level, granted_by)
               values (%s, %s, %s, 'read', 'user:u1')""",
            [org, node, only],
        )
    return node  # type: ignore[no-any-return]


async def test_the_same_words_of_another_org_are_never_found(shelf: Shelf, others: Shelf) -> None:
    await others.put("theirs", "Der Mietvertrag der Wohnung.", "Geheimnis")
    await shelf.put("ours", "Der Mietvertrag der Garage.")
    assert await shelf.names("Mietvertrag") == ["ours"]
    assert await others.names("Mietvertrag") == ["theirs"]
    assert (await shelf.find("Geheimnis")).total == 0
    assert (await shelf.find("Geheimnix")).corrected == {}
    assert (await shelf.find('"Geheimnis" OR "Garage"')).total == 1


async def test_the_function_looks_only_into_the_transactions_org(
    app: Duly, shelf: Shelf, others: Shelf, sql: psycopg.Connection
) -> None:
    """Also for whoever names the words of another."""
    await others.put("theirs", "Geheimnis")
    await shelf.put("ours", "Garage")
    tags: dict[UUID, int] = dict(sql.execute("select org_id, tag from documents.search_stats").fetchall())
    asked = """select count(*) from documents.find_passages('system:x', %(q)s, null, %(q)s, %(q)s, 100,
                   array[%(q)s]::tsquery[], array[1], '{}', false, 10, 0)"""
    for org, expected in ((others.org, 1), (shelf.org, 0)):
        async with app.tenant_session(org) as conn:
            found = await conn.execute(asked, {"q": f"'{tags[others.org]}.geheimnis'"})
            assert await found.fetchall() == [(expected,)]
    async with app.tenant_session(shelf.org) as conn:
        near = await conn.execute("select count(*) from documents.near_terms(array['geheimnix'])")
        assert await near.fetchall() == [(0,)]


async def test_a_tenant_cannot_write_counts(app: Duly, shelf: Shelf) -> None:
    for command in (
        "update documents.search_terms set df = 1",
        "delete from documents.search_stats",
        "update documents.chunk_terms set words = 1",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with app.tenant_session(shelf.org) as conn:
                await conn.execute(command)


async def test_closed_folders_are_never_searched(shelf: Shelf, sql: psycopg.Connection) -> None:
    closed = folder(sql, shelf.org, "Personal", only="user:boss")
    below = folder(sql, shelf.org, "Akten", closed)
    open_ = folder(sql, shelf.org, "Alle")
    await shelf.put("secret", "Die Abfindung steht im Aufhebungsvertrag.", node_id=closed)
    await shelf.put("deeper", "Noch ein Aufhebungsvertrag.", node_id=below)
    await shelf.put("shared", "Kein Vertrag ohne Wohnung.", node_id=open_)
    await shelf.put("loose", "Ein Vertrag.")
    assert sorted((await shelf.names("Aufhebungsvertrag", who="boss"))[:2]) == ["deeper", "secret"]
    assert {*await shelf.names("Aufhebungsvertrag Vertrag")} == {"shared", "loose"}
    for query in ("Abfindung", "Aufhebungsvertrg", '"Aufhebungsvertrag"', "secret"):
        found = await shelf.find(query)
        assert (found.total, found.corrected) in [(0, {}), (2, {})], query
        assert {hit.name for hit in found.hits} <= {"shared", "loose"}
    assert await shelf.names("Vertrag", Filters(nodes=(closed,))) == []
    assert await shelf.names("Aufhebungsvertrag", Filters(nodes=(below,)), who="boss") == ["deeper"]
    assert sorted(await shelf.names("Aufhebungsvertrag", Filters(nodes=(closed,)), who="boss")) == [
        "deeper",
        "secret",
    ]
    assert await shelf.names("Vertrag", Filters(nodes=(open_,))) == ["shared"]
    assert await shelf.names("Vertrag", Filters(nodes=(uuid.uuid4(),))) == []


async def test_somebody_who_sees_little_finds_it_among_much(shelf: Shelf, sql: psycopg.Connection) -> None:
    closed = folder(sql, shelf.org, "Personal", only="user:boss")
    await shelf.put("closed", *["Der Vertrag gilt, der Vertrag."] * 1500, node_id=closed)
    await shelf.put("mine", "Ein Vertrag.")
    found = await shelf.find("Vertrag")
    assert ([hit.name for hit in found.hits], found.total) == (["mine"], 1)


async def test_a_word_that_only_closed_folders_have_answers_like_one_that_nothing_has(
    shelf: Shelf, sql: psycopg.Connection
) -> None:
    closed = folder(sql, shelf.org, "Personal", only="user:boss")
    await shelf.put("secret", "Herr Zwickelmoser verlässt uns.", node_id=closed)
    await shelf.put("open", "Herr Zwickelmeser und Frau Brandmeyer kommen.")
    there, nowhere = await shelf.find("Zwickelmoser"), await shelf.find("Brandmayer")
    assert [hit.name for hit in there.hits] == [hit.name for hit in nowhere.hits] == ["open"]
    assert there.corrected == {"Zwickelmoser": ("Zwickelmeser",)}
    assert nowhere.corrected == {"Brandmayer": ("Brandmeyer",)}
    assert await shelf.names("Zwickelmoser", who="boss") == ["secret"]
