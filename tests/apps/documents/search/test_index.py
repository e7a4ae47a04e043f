"""The index follows the documents: at once, all of it, and with right counts."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID

import psycopg

from duly import Duly
from duly.apps.documents.schema import Connection
from duly.apps.documents.search.index import publish, rename, unpublish
from duly.apps.documents.search.normalize import readable
from duly.apps.documents.search.search import search
from tests.apps.documents.search.shelf import Shelf, passages
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
    """Counts are what counting anew gives, and marks stand where they should."""
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


async def test_counts_are_right_after_anything_in_any_order(
    app: Duly, shelf: Shelf, sql: psycopg.Connection
) -> None:
    chance = random.Random(8)

    def some_text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(0, 12)))

    there: list[UUID] = []
    for _ in range(40):
        what = chance.choice(["put", "put", "replace", "unpublish", "delete", "rename"])
        texts = [some_text() for _ in range(chance.randint(0, 4))]
        if what == "put" or not there:
            there.append(await shelf.put(some_text() or "x", *texts))
            continue
        one = chance.choice(there)
        async with app.tenant_session(shelf.org) as conn:
            if what == "replace":
                await publish(conn, shelf.org, one, None, some_text(), passages(*texts), language=None)
            elif what == "unpublish":
                await unpublish(conn, shelf.org, one)
            elif what == "rename":
                await rename(conn, shelf.org, one, some_text())
            else:
                await conn.execute(
                    "delete from documents.documents where org_id = %s and document_id = %s", [shelf.org, one]
                )
                there.remove(one)
        check(sql, shelf.org)
    sql.execute("delete from documents.documents")
    check(sql, shelf.org)
    assert sql.execute("select count(*) from documents.search_terms").fetchall() == [(0,)]


async def test_others_see_the_old_passages_until_all_the_new_ones_are_there(app: Duly, shelf: Shelf) -> None:
    one = await shelf.put("a", *[f"alt Miete {number}" for number in range(5)])
    async with app.tenant_session(shelf.org) as conn:
        count = await publish(
            conn, shelf.org, one, None, "a", passages("neu Miete 1", "neu Miete 2"), language="de"
        )
        assert count == 2
        assert [hit.text[:3] for hit in (await shelf.find("Miete")).hits] == ["alt"] * 5
    assert [hit.text[:3] for hit in (await shelf.find("Miete")).hits] == ["neu"] * 2
    assert (await shelf.find("alt")).total == 0


async def test_what_is_rolled_back_was_never_there(app: Duly, shelf: Shelf, sql: psycopg.Connection) -> None:
    one = await shelf.put("a", "Miete")
    try:
        async with app.tenant_session(shelf.org) as conn:
            await publish(conn, shelf.org, one, None, "a", passages("Kaution"), language="de")
            raise KeyError
    except KeyError:
        pass
    assert await shelf.names("Miete Kaution") == ["a"]
    assert await shelf.names("Kaution") == []
    check(sql, shelf.org)


async def test_a_renamed_document_is_found_by_its_new_name_and_its_text(app: Duly, shelf: Shelf) -> None:
    one = await shelf.put("Rechnung.pdf", "Die Miete")
    async with app.tenant_session(shelf.org) as conn:
        await rename(conn, shelf.org, one, "Mahnung.pdf")
    assert await shelf.names("Rechnung") == []
    assert len(await shelf.names("Mahnung")) == len(await shelf.names("Miete")) == 1


async def test_many_publish_at_once_and_nobody_waits_for_ever(shelf: Shelf, sql: psycopg.Connection) -> None:
    there = [await shelf.put(f"{number}", "Miete Vertrag") for number in range(3)]
    chance = random.Random(3)

    async def again(one: UUID) -> None:
        for _ in range(5):
            await shelf.replace(one, "x", [" ".join(chance.sample(WORDS, k=len(WORDS)))])

    await asyncio.gather(*(again(one) for one in there), shelf.put("late", *WORDS))
    check(sql, shelf.org)


async def test_no_search_reads_a_table_from_end_to_end(
    app: Duly, shelf: Shelf, sql: psycopg.Connection
) -> None:
    chance = random.Random(3)
    made = ["".join(chance.choices("bcdfglmnrst", k=9)) for _ in range(4000)]
    await shelf.put("Akte", *(" ".join(chance.choices(made, k=12)) for _ in range(1500)))
    sql.execute("analyze documents.chunk_terms, documents.search_terms, documents.document_chunks")
    async with app.tenant_session(shelf.org) as conn:
        before = await scans(conn)  # what the connection did earlier may not have been told yet
        found = await search(conn, visitor(shelf.org, "u1"), f"{made[0]} {made[1][:-2]}x{made[1][-2:]}")
        after = await scans(conn)
    assert found.corrected, "the second word has a slip, so that the nearest are looked for too"
    assert after["whole"] == before["whole"]
    assert all(after["index"][table] > before["index"].get(table, 0) for table in TABLES)


async def scans(conn: Connection) -> dict[str, dict[str, int]]:
    """How often each table was read from end to end, and by an index."""
    found = await conn.execute(
        """select relname, seq_scan, idx_scan from pg_stat_xact_user_tables where relname = any(%s)""",
        [TABLES],
    )
    told = await found.fetchall()
    return {"whole": {row[0]: row[1] for row in told}, "index": {row[0]: row[2] for row in told}}


def test_broken_lines_are_joined_in_linear_time() -> None:
    assert readable("Miet-\n  vertrag, E-\n\n\nMail") == "Mietvertrag, EMail"
    # Quadratic, this would take minutes.
    assert len(readable("a-" + "\n" * 90_000)) > 90_000
