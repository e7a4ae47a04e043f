"""A search reveals nothing of other orgs and hidden folders: no text, no count, no words."""

from __future__ import annotations

import uuid
from uuid import UUID

import psycopg
import pytest

from duly import Duly
from duly.apps.documents.search.models import Filters
from tests.apps.documents.search.indexed_documents import IndexedDocuments


@pytest.fixture
def others(app: Duly, sql: psycopg.Connection) -> IndexedDocuments:
    org = uuid.uuid4()
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Other')", [org])
    return IndexedDocuments(app, org)


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


async def test_passages_of_another_org_are_never_found(
    documents: IndexedDocuments, others: IndexedDocuments
) -> None:
    await others.put("theirs", "Der Mietvertrag der Wohnung.", "Geheimnis")
    await documents.put("ours", "Der Mietvertrag der Garage.")
    assert await documents.names("Mietvertrag") == ["ours"]
    assert await others.names("Mietvertrag") == ["theirs"]
    assert (await documents.find("Geheimnis")).total == 0
    assert (await documents.find("Geheimnix")).corrected == {}
    assert (await documents.find('"Geheimnis" OR "Garage"')).total == 1


async def test_find_passages_is_limited_to_the_org_of_the_transaction(
    app: Duly, documents: IndexedDocuments, others: IndexedDocuments, sql: psycopg.Connection
) -> None:
    """Also if the query has the lexemes of another org."""
    await others.put("theirs", "Geheimnis")
    await documents.put("ours", "Garage")
    tags: dict[UUID, int] = dict(sql.execute("select org_id, tag from documents.search_stats").fetchall())
    asked = """select count(*) from documents.find_passages('system:x', %(q)s, null, %(q)s, %(q)s, 100,
                   array[%(q)s]::tsquery[], array[1], '{}', false, 10, 0)"""
    for org, expected in ((others.org, 1), (documents.org, 0)):
        async with app.tenant_session(org) as conn:
            found = await conn.execute(asked, {"q": f"'{tags[others.org]}.geheimnis'"})
            assert await found.fetchall() == [(expected,)]
    async with app.tenant_session(documents.org) as conn:
        near = await conn.execute("select count(*) from documents.near_terms(array['geheimnix'])")
        assert await near.fetchall() == [(0,)]


async def test_a_tenant_cannot_change_frequencies(app: Duly, documents: IndexedDocuments) -> None:
    for command in (
        "update documents.search_terms set df = 1",
        "delete from documents.search_stats",
        "update documents.chunk_terms set words = 1",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with app.tenant_session(documents.org) as conn:
                await conn.execute(command)


async def test_hidden_folders_are_never_searched(
    documents: IndexedDocuments, sql: psycopg.Connection
) -> None:
    closed = folder(sql, documents.org, "Personal", only="user:boss")
    below = folder(sql, documents.org, "Akten", closed)
    open_ = folder(sql, documents.org, "Alle")
    await documents.put("secret", "Die Abfindung steht im Aufhebungsvertrag.", node_id=closed)
    await documents.put("deeper", "Noch ein Aufhebungsvertrag.", node_id=below)
    await documents.put("shared", "Kein Vertrag ohne Wohnung.", node_id=open_)
    await documents.put("loose", "Ein Vertrag.")
    assert sorted((await documents.names("Aufhebungsvertrag", who="boss"))[:2]) == ["deeper", "secret"]
    assert {*await documents.names("Aufhebungsvertrag Vertrag")} == {"shared", "loose"}
    for query in ("Abfindung", "Aufhebungsvertrg", '"Aufhebungsvertrag"', "secret"):
        found = await documents.find(query)
        assert (found.total, found.corrected) in [(0, {}), (2, {})], query
        assert {hit.name for hit in found.hits} <= {"shared", "loose"}
    assert await documents.names("Vertrag", Filters(nodes=(closed,))) == []
    assert await documents.names("Aufhebungsvertrag", Filters(nodes=(below,)), who="boss") == ["deeper"]
    assert sorted(await documents.names("Aufhebungsvertrag", Filters(nodes=(closed,)), who="boss")) == [
        "deeper",
        "secret",
    ]
    assert await documents.names("Vertrag", Filters(nodes=(open_,))) == ["shared"]
    assert await documents.names("Vertrag", Filters(nodes=(uuid.uuid4(),))) == []


async def test_visible_passages_are_found_among_many_hidden_ones(
    documents: IndexedDocuments, sql: psycopg.Connection
) -> None:
    closed = folder(sql, documents.org, "Personal", only="user:boss")
    await documents.put("closed", *["Der Vertrag gilt, der Vertrag."] * 1500, node_id=closed)
    await documents.put("mine", "Ein Vertrag.")
    found = await documents.find("Vertrag")
    assert ([hit.name for hit in found.hits], found.total) == (["mine"], 1)


async def test_a_word_of_hidden_folders_only_behaves_like_an_unknown_word(
    documents: IndexedDocuments, sql: psycopg.Connection
) -> None:
    closed = folder(sql, documents.org, "Personal", only="user:boss")
    await documents.put("secret", "Herr Zwickelmoser verlässt uns.", node_id=closed)
    await documents.put("open", "Herr Zwickelmeser und Frau Brandmeyer kommen.")
    there, nowhere = await documents.find("Zwickelmoser"), await documents.find("Brandmayer")
    assert [hit.name for hit in there.hits] == [hit.name for hit in nowhere.hits] == ["open"]
    assert there.corrected == {"Zwickelmoser": ("Zwickelmeser",)}
    assert nowhere.corrected == {"Brandmayer": ("Brandmeyer",)}
    assert await documents.names("Zwickelmoser", who="boss") == ["secret"]
