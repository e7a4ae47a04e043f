"""Fill a database with passages in bulk: the searched org, and other orgs with the same text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any
from uuid import UUID, uuid4

import psycopg

from search.filler import Filler

Connection = psycopg.Connection[tuple[Any, ...]]
_PASSAGES = 50
"""Passages per document."""
_SESSIONS = 2
_INDEXES = ("chunk_terms_tsv", "search_terms_near")

_DOCUMENT = """
insert into documents.documents
    (org_id, document_id, name, sha256, size, media_type, created_by, chunk_count)
values (%(org)s, %(document)s, 'Akte ' || left(%(document)s::text, 6) || '.pdf', repeat('0', 64), 1,
        'application/pdf', 'system:bench', cardinality(%(texts)s::text[]))
"""
_CHUNKS = """
insert into documents.document_chunks
    (org_id, document_id, chunk_index, page_number, element_type, text, language)
select %(org)s, %(document)s, n - 1, n, 'NarrativeText', text, 'de'
from unnest(%(texts)s::text[]) with ordinality x(text, n)
"""
_TERMS = """
insert into documents.chunk_terms (org_id, document_id, chunk_index, words, tsv)
select %(org)s, %(document)s, n - 1, array_length(regexp_split_to_array(text, '\\s+'), 1) * 0.55,
       documents.marked(%(tag)s, documents.tagged(%(tag)s,
           to_tsvector('german', text) || setweight(to_tsvector('german', parts), 'C')
           || setweight(to_tsvector('german', 'Akte ' || left(%(document)s::text, 6) || ' pdf'), 'B')))
from unnest(%(texts)s::text[], %(parts)s::text[]) with ordinality x(text, parts, n)
"""
_COUNT = """
insert into documents.search_terms (org_id, lexeme, tag, df, df2, df4)
select c.org_id, substr(w.lexeme, length(s.tag::text) + 2), s.tag, count(*),
       count(*) filter (where cardinality(w.positions) >= 2),
       count(*) filter (where cardinality(w.positions) >= 4)
from documents.chunk_terms c join documents.search_stats s using (org_id), unnest(c.tsv) w
where w.positions is not null and c.org_id = %(org)s
group by 1, 2, 3;
"""
_TOTAL = """
update documents.search_stats s set chunks = x.chunks, words = x.words
from (select count(*) as chunks, sum(words) as words from documents.chunk_terms where org_id = %(org)s) x
where s.org_id = %(org)s
"""
_CLOSED = """
with folder as (
    insert into documents.nodes (org_id, node_id, name, created_by)
    values (%(org)s, %(node)s, 'Closed', 'system:bench') returning node_id
), guarded as (
    insert into documents.node_grants (org_id, node_id, principal, level, granted_by)
    select %(org)s, node_id, 'user:other', 'manage', 'system:bench' from folder
)
update documents.documents d set node_id = %(node)s
where d.org_id = %(org)s and d.name like 'Akte%%' and hashtext(d.document_id::text) %% 20 = 0
"""
# Another org has the same documents with other ids, and the same words with its own number.
_COPIES = (
    """insert into documents.documents
        (org_id, document_id, name, sha256, size, media_type, created_by, chunk_count)
    select %(to)s, md5(document_id::text || %(to)s::text)::uuid, name, sha256, size, media_type, created_by,
           chunk_count
    from documents.documents where org_id = %(org)s""",
    """insert into documents.document_chunks
        (org_id, document_id, chunk_index, page_number, element_type, text, language)
    select %(to)s, md5(document_id::text || %(to)s::text)::uuid, chunk_index, page_number, element_type, text,
           language
    from documents.document_chunks where org_id = %(org)s""",
    """insert into documents.chunk_terms (org_id, document_id, chunk_index, words, tsv)
    select %(to)s, md5(document_id::text || %(to)s::text)::uuid, chunk_index, words,
           replace(replace(tsv::text, '''' || %(tag)s || '.', '''' || %(other)s || '.'),
                   '''' || %(tag)s || '+', '''' || %(other)s || '+')::tsvector
    from documents.chunk_terms where org_id = %(org)s""",
    """insert into documents.search_terms (org_id, lexeme, tag, df, df2, df4)
    select %(to)s, lexeme, %(other)s, df, df2, df4 from documents.search_terms where org_id = %(org)s""",
)


def make_org(conn: Connection) -> UUID:
    """Create an empty org."""
    org = uuid4()
    conn.execute("insert into duly.organizations (org_id, name) values (%s, 'bench')", [org])
    conn.execute("insert into documents.search_stats (org_id) values (%s)", [org])
    return org


def fill(url: str, org: UUID, made: Iterator[Filler]) -> None:
    """Insert all these passages, fifty per document."""
    batches = iter(lambda: list(islice(made, _PASSAGES)), [])
    with ThreadPoolExecutor(_SESSIONS) as sessions:
        list(sessions.map(lambda batch: _document(url, org, batch), batches))
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(_COUNT, {"org": org})
        conn.execute(_TOTAL, {"org": org})


def _document(url: str, org: UUID, batch: list[Filler]) -> None:
    values = {
        "org": org,
        "document": uuid4(),
        "texts": [f.text for f in batch],
        "parts": [f.parts for f in batch],
    }
    with psycopg.connect(url) as conn:
        values["tag"] = tag_of(conn, org)
        conn.execute("set local session_replication_role = replica")
        conn.execute(_DOCUMENT, values)
        conn.execute(_CHUNKS, values)
        conn.execute(_TERMS, values)


def restrict_folder(url: str, org: UUID) -> None:
    """Move a twentieth of the documents to a folder without access."""
    with psycopg.connect(url) as conn:
        conn.execute(_CLOSED, {"org": org, "node": uuid4()})


def copy(url: str, org: UUID, orgs: Iterable[UUID]) -> None:
    """Copy the text to each of these orgs."""
    with ThreadPoolExecutor(_SESSIONS) as sessions:
        list(sessions.map(lambda other: _copy(url, org, other), orgs))


def _copy(url: str, org: UUID, other: UUID) -> None:
    with psycopg.connect(url) as conn:
        values = {"org": org, "to": other, "tag": tag_of(conn, org), "other": tag_of(conn, other)}
        conn.execute("set local session_replication_role = replica")
        for command in _COPIES:
            conn.execute(command, values)
        conn.execute(_TOTAL, {"org": other})


def tag_of(conn: Connection, org: UUID) -> int:
    """Return the org's number in the index."""
    [(tag,)] = conn.execute("select tag from documents.search_stats where org_id = %s", [org]).fetchall()
    return int(tag)


@contextmanager
def in_bulk(url: str) -> Iterator[None]:
    """Drop the indexes on words and create them at the end; `replica` skips the triggers."""
    with psycopg.connect(url, autocommit=True) as conn:
        definitions = [
            conn.execute("select pg_get_indexdef(%s::regclass)", [f"documents.{name}"]).fetchall()[0][0]
            for name in _INDEXES
        ]
        for name in _INDEXES:
            conn.execute(f"drop index documents.{name}")
        yield
        conn.execute("set maintenance_work_mem = '1GB'")
        for definition in definitions:
            conn.execute(definition)
        conn.execute("vacuum analyze")
        conn.execute("checkpoint")
