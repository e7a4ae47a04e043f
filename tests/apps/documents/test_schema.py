"""The tables of documents are isolated like Duly's own."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from duly.apps.documents.schema import SCHEMA
from duly.core.errors import SchemaMismatch
from duly.db import migrate
from duly.db.schema_snapshot import snapshot
from duly.testing import DatabaseCluster
from tests.db.release import restore

BASELINE = 6
"""The number of the last migration of 0.9.0, which the baseline has taken over."""


def test_every_table_is_isolated_and_begins_with_its_org(sql: psycopg.Connection) -> None:
    tables = sql.execute("""
        select c.relname, c.relrowsecurity and c.relforcerowsecurity,
               (select a.attname from pg_index i
                join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
                where i.indrelid = c.oid and i.indisprimary)
        from pg_class c where c.relnamespace = 'documents'::regnamespace and c.relkind in ('r', 'p')
    """).fetchall()
    own = [table for table in tables if table[0] != "schema_versions"]
    assert len(own) > 5
    assert {(isolated, first) for _, isolated, first in own} == {(True, "org_id")}


def test_the_schema_is_the_one_that_was_reviewed(sql: psycopg.Connection) -> None:
    """Regenerate with `./dev snapshot`, and read the difference."""
    reviewed = Path(__file__).with_name("schema.txt").read_text(encoding="utf-8")
    assert snapshot(sql, SCHEMA.name).splitlines() == reviewed.splitlines()


def test_an_installation_without_documents_gets_them_later(cluster: DatabaseCluster) -> None:
    with cluster.fresh() as made:
        migrate.check(made.direct_url)
        with pytest.raises(SchemaMismatch, match="migrations are missing"):
            migrate.check(made.direct_url, SCHEMA)
        steps = migrate.migrations(SCHEMA)
        assert [m.version for m in steps] == list(range(BASELINE, BASELINE + len(steps)))
        for step in steps:
            assert migrate.migrate(made.direct_url, SCHEMA, upto=step.version) == [step]
        migrate.check(made.direct_url, SCHEMA)
        assert migrate.migrate(made.direct_url, SCHEMA) == []


def test_no_statement_of_a_migration_is_without_effect(cluster: DatabaseCluster) -> None:
    with cluster.fresh() as made, psycopg.connect(made.direct_url) as conn:
        said: list[str] = []
        conn.add_notice_handler(lambda notice: said.append(f"{notice.severity}: {notice.message_primary}"))
        for migration in migrate.migrations(SCHEMA):
            conn.execute("reset role" if migration.version == BASELINE else "set local role duly_owner")
            conn.execute(migration.text)
        assert [line for line in said if line.startswith("WARNING")] == []


def test_usage_of_0_9_is_still_counted(cluster: DatabaseCluster) -> None:
    with (
        cluster.fresh(migrated=False) as made,
        psycopg.connect(made.direct_url, autocommit=True) as conn,
    ):
        restore(conn)
        for schema in (migrate.ENGINE, SCHEMA):
            migrate.migrate(made.direct_url, schema)
        kept = "select count(distinct document_id), sum(size)::bigint from documents.document_versions"
        counted = conn.execute("select documents, bytes from documents.usage").fetchall()
        assert counted == conn.execute(kept).fetchall()
        assert counted[0][0] == 2
