"""Run the queries: the rank of the right passage, and the time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID, uuid4

import psycopg
from figures.numbers import percentiles

from duly import Actor, Duly
from duly.apps.documents.elements import Passage
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.schema import statement
from duly.apps.documents.search import compounds
from duly.apps.documents.search.index import publish
from duly.apps.documents.search.models import Filters
from duly.apps.documents.search.query import parse_query
from duly.apps.documents.search.query_terms import look_up_terms
from duly.apps.documents.search.ranking import SearchPlan, plan_search
from search.sets import Questions

_TOP = 10
_SEED = """
select dc.document_id, d.name, dc.text, ts_rank(to_tsvector('german', dc.text), query) as rank
from documents.document_chunks dc
join documents.documents d on d.org_id = dc.org_id and d.document_id = dc.document_id
cross join lateral (select {query}) q(query)
where to_tsvector('german', dc.text) @@ query and dc.org_id = %(org)s
order by rank desc limit 20
"""
_AND = _SEED.format(query="plainto_tsquery('german', %(query)s)")
_OR = _SEED.format(query="replace(plainto_tsquery('german', %(query)s)::text, '&', '|')::tsquery")


async def put(app: Duly, org: UUID, passages: Sequence[str]) -> dict[UUID, int]:
    """Store each passage as a document with a meaningless name; return where each is."""
    positions = {}
    for position, text in enumerate(passages):
        document = uuid4()
        async with app.tenant_session(org) as conn:
            await conn.execute(
                """insert into documents.documents
                       (org_id, document_id, name, sha256, size, media_type, created_by, chunk_count)
                   values (%s, %s, %s, repeat('0', 64), 1, 'text/plain', 'system:bench', 1)""",
                [org, document, f"{document}"],
            )
            passage = Passage(index=0, page=1, type="NarrativeText", text=text)
            await publish(conn, org, document, None, f"{document}", [passage])
        positions[document] = position
    return positions


async def ask(
    app: Duly, org: UUID, questions: Questions, positions: dict[UUID, int], filters: Filters | None = None
) -> dict[str, Any]:
    """Run all queries through the public API, once to warm up and once measured, splitting compounds anew."""
    principal = DocumentPrincipal(org, Actor.user("bench"))
    for question, _ in questions.queries:
        await app.documents.search(principal, question, filters, limit=_TOP)
    compounds.split_compound.cache_clear()
    ranks, times = [], []
    for question, right in questions.queries:
        began = time.perf_counter()
        found = await app.documents.search(principal, question, filters, limit=_TOP)
        times.append((time.perf_counter() - began) * 1000)
        ranks.append(_rank([positions.get(hit.document_id) for hit in found.hits], right))
    return {**_quality(ranks), "ms": percentiles(times), "questions": len(ranks)}


@contextmanager
def seed_index(url: str) -> Iterator[None]:
    """Create the index for the seed's query while it is measured."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("set maintenance_work_mem = '1GB'")
        conn.execute("create index seed on documents.document_chunks using gin (to_tsvector('german', text))")
        conn.execute("vacuum analyze documents.document_chunks")
        yield
        conn.execute("drop index documents.seed")


def ask_seed(
    url: str, org: UUID, questions: Questions, positions: dict[UUID, int], *, any_word: int = 0
) -> dict[str, Any]:
    """Run the same queries with plain full text search, as the owner of the tables, without policies.

    It requires all words. With `any_word` this many queries require any of them.
    """
    ranks, times = [], []
    selected = questions.queries[:: len(questions.queries) // any_word + 1] if any_word else questions.queries
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("set jit = off")
        for question, right in selected:
            began = time.perf_counter()
            rows = conn.execute(_OR if any_word else _AND, {"query": question, "org": org}).fetchall()
            times.append((time.perf_counter() - began) * 1000)
            ranks.append(_rank([positions.get(row[0]) for row in rows[:_TOP]], right))
    return {**_quality(ranks), "ms": percentiles(times), "questions": len(ranks)}


async def compare(app: Duly, org: UUID, questions: Questions, sample: int) -> float:
    """Return the share of the ten best passages that the bounded search finds."""
    shared = total = 0
    for question, _ in questions.queries[:: len(questions.queries) // sample + 1]:
        async with app.tenant_session(org) as conn:
            parsed = parse_query(question)
            terms = await look_up_terms(conn, org, parsed)
            few = plan_search(parsed, terms)
            if few is None:
                continue
            best = await _best(conn, org, replace(few, any=few.whole, all=None, max_candidates=10_000_000))
            shared += len(best & await _best(conn, org, few))
            total += len(best)
    return shared / total if total else 1.0


async def _best(conn: Any, org: UUID, how: SearchPlan) -> set[Any]:
    values = asdict(how) | {"org_id": org, "principal": "user:bench", "filters": "{}"}
    values |= {"grouped": False, "limit": _TOP, "offset": 0}
    rows = await (await conn.execute(statement("search/find_passages"), values)).fetchall()
    return {(row[0], row[4]) for row in rows}


def _rank(found: Sequence[int | None], right: int) -> int:
    return found.index(right) + 1 if right in found else 0


def _quality(ranks: Sequence[int]) -> dict[str, float]:
    return {
        "mrr": sum(1 / rank for rank in ranks if rank) / len(ranks),
        "recall": sum(rank > 0 for rank in ranks) / len(ranks),
    }
