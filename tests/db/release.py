"""Dump and restore the database of a release, with its rows, as SQL for a superuser connection.

The schema is created by the migration files of the release, as in production; the rows follow as INSERTs.
Neither `pg_dump` nor `psql` is needed.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from duly.core.schema import Schema
from duly.db.migrate import ENGINE, migrations, squashed

Conn = psycopg.Connection[Any]

RELEASE_0_9_0 = Path(__file__).parent / "fixtures" / "release_0_9_0.sql.gz"
_MIGRATION = re.compile(r"^-- (\w+): (\d{4})_(\w+)\.sql\n(begin;\n.+?^commit;)$", re.M | re.S)
"""Schema, number, name and text of a migration in the fixture."""

_TABLES = """
    select c.oid, c.oid::regclass::text from pg_class c
    where c.relnamespace = any(%s::text[]::regnamespace[])
      and c.relkind in ('r', 'p') and not c.relispartition
    order by 2
"""
_COLUMNS = """
    select a.attname, a.attidentity <> '' from pg_attribute a
    where a.attrelid = %s and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum
"""
_ADVANCE_XID = "do $$ begin while pg_current_xact_id() <= '{}' loop commit; end loop; end $$"


def restore(conn: Conn, path: Path = RELEASE_0_9_0) -> None:
    """Restore the database of a release into an empty one, on an autocommit connection."""
    conn.execute(_read(path))
    # The rows contain transaction ids of another server: advance the ids of this one beyond them.
    newest = conn.execute("""
        select greatest((select max(commit_xid::text::bigint) from duly.event_log),
                        (select max(commit_xid::text::bigint) from duly.audit_entries))
    """).fetchone()
    assert newest
    conn.execute(_ADVANCE_XID.format(*newest))


def restore_older(conn: Conn, version: int, schema: Schema = ENGINE) -> None:
    """Create the empty database of an earlier release, at this version of a schema."""
    before = squashed(schema)
    assert before
    checksums = dict(before.checksums)
    for of, number, name, text in _MIGRATION.findall(_read(RELEASE_0_9_0)):
        if of == schema.name and int(number) <= version:
            conn.execute(text)
            conn.execute(
                f"insert into {schema.name}.schema_versions values (%s, %s, %s)",
                [number, name, checksums[int(number)]],
            )


def _read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def dump(conn: Conn, schemas: Sequence[Schema]) -> str:
    """Return the SQL that `restore` runs; the connection must be in a transaction with one snapshot."""
    created = conn.execute("select min(applied_at at time zone 'UTC') from duly.schema_versions").fetchone()
    assert created
    clock = [f"set duly.now = '{created[0]}+00';  -- the partitions are those of that time", ""]
    return "\n".join([*clock, *_schemas(schemas), *_rows(conn, schemas), "reset duly.now;", ""])


def _schemas(schemas: Sequence[Schema]) -> Iterator[str]:
    for schema in schemas:
        for migration in migrations(schema):
            yield f"\n-- {schema.name}: {migration.version:04}_{migration.name}.sql\nbegin;"
            if migration != migrations(schema)[0]:
                yield "set local role duly_owner;"
            yield f"{migration.text}commit;"


def _rows(conn: Conn, schemas: Sequence[Schema]) -> Iterator[str]:
    yield "\n-- The rows: no trigger counts them again, and no foreign key asks for an order.\nbegin;"
    yield "set local session_replication_role = replica;"
    for oid, table in conn.execute(_TABLES, [[schema.name for schema in schemas]]).fetchall():
        columns = conn.execute(_COLUMNS, [oid]).fetchall()
        texts = sql.SQL(", ").join(
            sql.SQL("quote_nullable({}::text)").format(sql.Identifier(c)) for c, _ in columns
        )
        query = sql.SQL("select concat_ws(', ', {}) from {}").format(texts, sql.SQL(table))
        lines = sorted(f"({line})" for (line,) in conn.execute(query))
        yield f"delete from {table};"
        if lines:
            names = ", ".join(name for name, _ in columns)
            override = " overriding system value" if any(identity for _, identity in columns) else ""
            yield f"insert into {table} ({names}){override} values\n" + ",\n".join(lines) + ";"
        for name in (name for name, identity in columns if identity):
            yield (
                f"select setval(pg_get_serial_sequence('{table}', '{name}'), "
                f"(select coalesce(max({name}), 0) + 1 from {table}), false);"
            )
    yield "commit;"
