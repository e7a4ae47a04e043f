"""The index changes with the documents, in one transaction, with correct document frequencies."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID

import psycopg

from duly import Duly
from duly.apps.documents.schema import Connection
from duly.apps.documents.search.index import publish, rename, unpublish
from duly.apps.documents.search.normalize import normalize
from duly.apps.documents.search.search import search
from tests.apps.documents.search.indexed_documents import IndexedDocuments, passages
from tests.apps.documents.stage import visitor

WORDS = ["Miete", "Vertrag", "Wohnung", "Mietvertrag", "Frist", "house", "O'Neil", "x\\y", "2024", "a.b@c.de"]

TABLES = ["chunk_terms", "document_chunks", "search_terms"]

RECOUNT = """
    select s.org_id, substr(w.lexeme, length(s.tag::text) + 2) as lexeme, s.tag, count(*)::integer,
           (count(*) filter (where cardinality(w.positions) >= 2))::integer,
           (count(*) filter (where cardinality(w.positions) >= 4))::integer
    from documents.chunk_terms c join documents.search_stats s using (org_id), unnest(c.tsv) w
    where w.positions is not null group by 1, 2, 3"""


def check(sql: psycopg.Connection, org: UUID) -> None:
    """Assert that frequencies and marks equal those of a recount."""
    counted = sql.execute("select org_id, lexeme, tag, df, df2, df4 from documents.search_terms").fetchall()
    assert sorted(counted) == sorted(sql.execute(RECOUNT).fetchall())
    [stats] = sql.execute(
        "select chunks, words from documents.search_stats where org_id = %s", [org]
    ).fetchall()
    [again] = sql.execute("select count(*), coalesce(sum(words), 0) from documents.chunk_terms").fetchall()
    assert stats == again
    wrong = sql.execute("""
        select from documents.search_terms t
        where t.df2 <> (select count(*) from documents.chunk_terms c
                        where array[t.tag || '+2.' || t.lexeme] <@ tsvector_to_array(c.tsv))""").fetchall()
    assert wrong == []


async def test_frequencies_are_correct_after_random_changes(
    app: Duly, documents: IndexedDocuments, sql: psycopg.Connection
) -> None:
    chance = random.Random(8)

    def some_text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(0, 12)))

    there: list[UUID] = []
    for _ in range(40):
        what = chance.choice(["put", "put", "replace", "unpublish", "delete", "rename"])
        texts = [some_text() for _ in range(chance.randint(0, 4))]
        if what == "put" or not there:
            there.append(await documents.put(some_text() or "x", *texts))
            continue
        one = chance.choice(there)
        async with app.tenant_session(documents.org) as conn:
            if what == "replace":
                await publish(conn, documents.org, one, None, some_text(), passages(*texts), language=None)
            elif what == "unpublish":
                await unpublish(conn, documents.org, one)
            elif what == "rename":
                await rename(conn, documents.org, one, some_text())
            else:
                await conn.execute(
                    "delete from documents.documents where org_id = %s and document_id = %s",
                    [documents.org, one],
                )
                there.remove(one)
        check(sql, documents.org)
    sql.execute("delete from documents.documents")
    check(sql, documents.org)
    assert sql.execute("select count(*) from documents.search_terms").fetchall() == [(0,)]


async def test_other_sessions_see_the_old_passages_until_the_commit(
    app: Duly, documents: IndexedDocuments
) -> None:
    one = await documents.put("a", *[f"alt Miete {number}" for number in range(5)])
    async with app.tenant_session(documents.org) as conn:
        count = await publish(
            conn, documents.org, one, None, "a", passages("neu Miete 1", "neu Miete 2"), language="de"
        )
        assert count == 2
        assert [hit.text[:3] for hit in (await documents.find("Miete")).hits] == ["alt"] * 5
    assert [hit.text[:3] for hit in (await documents.find("Miete")).hits] == ["neu"] * 2
    assert (await documents.find("alt")).total == 0


async def test_a_rollback_leaves_the_index_unchanged(
    app: Duly, documents: IndexedDocuments, sql: psycopg.Connection
) -> None:
    one = await documents.put("a", "Miete")
    try:
        async with app.tenant_session(documents.org) as conn:
            await publish(conn, documents.org, one, None, "a", passages("Kaution"), language="de")
            raise KeyError
    except KeyError:
        pass
    assert await documents.names("Miete Kaution") == ["a"]
    assert await documents.names("Kaution") == []
    check(sql, documents.org)


async def test_a_renamed_document_is_found_by_its_new_name_and_its_text(
    app: Duly, documents: IndexedDocuments
) -> None:
    one = await documents.put("Rechnung.pdf", "Die Miete")
    async with app.tenant_session(documents.org) as conn:
        await rename(conn, documents.org, one, "Mahnung.pdf")
    assert await documents.names("Rechnung") == []
    assert len(await documents.names("Mahnung")) == len(await documents.names("Miete")) == 1


async def test_concurrent_publishing_does_not_deadlock(
    documents: IndexedDocuments, sql: psycopg.Connection
) -> None:
    there = [await documents.put(f"{number}", "Miete Vertrag") for number in range(3)]
    chance = random.Random(3)

    async def again(one: UUID) -> None:
        for _ in range(5):
            await documents.replace(one, "x", [" ".join(chance.sample(WORDS, k=len(WORDS)))])

    await asyncio.gather(*(again(one) for one in there), documents.put("late", *WORDS))
    check(sql, documents.org)


async def test_a_search_uses_indexes_only(
    app: Duly, documents: IndexedDocuments, sql: psycopg.Connection
) -> None:
    chance = random.Random(3)
    made = ["".join(chance.choices("bcdfglmnrst", k=9)) for _ in range(4000)]
    await documents.put("Akte", *(" ".join(chance.choices(made, k=12)) for _ in range(1500)))
    sql.execute("analyze documents.chunk_terms, documents.search_terms, documents.document_chunks")
    async with app.tenant_session(documents.org) as conn:
        before = await scans(conn)  # earlier scans may not be flushed yet
        found = await search(conn, visitor(documents.org, "u1"), f"{made[0]} {made[1][:-2]}x{made[1][-2:]}")
        after = await scans(conn)
    assert found.corrected, "the second word is misspelled, so that similar terms are read too"
    assert after["whole"] == before["whole"]
    assert all(after["index"][table] > before["index"].get(table, 0) for table in TABLES)


async def scans(conn: Connection) -> dict[str, dict[str, int]]:
    """Return the sequential scans and the index scans of each table."""
    found = await conn.execute(
        """select relname, seq_scan, idx_scan from pg_stat_xact_user_tables where relname = any(%s)""",
        [TABLES],
    )
    rows = await found.fetchall()
    return {"whole": {row[0]: row[1] for row in rows}, "index": {row[0]: row[2] for row in rows}}


def test_hyphenated_lines_are_joined_in_linear_time() -> None:
    assert normalize("Miet-\n  vertrag, E-\n\n\nMail") == "Mietvertrag, EMail"
    # Quadratic, this would take minutes.
    assert len(normalize("a-" + "\n" * 90_000)) > 90_000
