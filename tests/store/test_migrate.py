"""The schema: how it comes to be, and that it is what was meant."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from duly.model.errors import SchemaMismatch
from duly.store.migrate import check, migrate, migrations
from duly.store.snapshot import snapshot
from duly.testing import Cluster, FreshDatabase

SNAPSHOT = Path(__file__).with_name("schema.txt")


def test_the_schema_is_the_one_that_was_reviewed(sql: psycopg.Connection) -> None:
    """Regenerate with `./dev snapshot`, and read the difference."""
    assert snapshot(sql).splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


def test_versions_are_numbered_without_gaps() -> None:
    assert [m.version for m in migrations()] == list(range(1, len(migrations()) + 1))


def test_migrating_twice_changes_nothing(fresh: FreshDatabase) -> None:
    assert migrate(fresh.direct_url) == []
    check(fresh.direct_url)


def test_every_version_can_be_reached_step_by_step(cluster: Cluster) -> None:
    with cluster.fresh(migrated=False) as made:
        for migration in migrations():
            assert migrate(made.direct_url, upto=migration.version) == [migration]
        with psycopg.connect(made.direct_url) as conn:
            assert snapshot(conn).splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


def test_many_processes_may_migrate_at_once(cluster: Cluster) -> None:
    with cluster.fresh(migrated=False) as made:
        applied: list[int] = []
        threads = [
            threading.Thread(target=lambda: applied.append(len(migrate(made.direct_url)))) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(applied) == [0, 0, 0, 0, 0, len(migrations())]


def test_a_failed_migration_leaves_nothing(cluster: Cluster) -> None:
    with cluster.fresh(migrated=False) as made:
        migrate(made.direct_url, upto=2)
        with psycopg.connect(made.direct_url, autocommit=True) as conn:
            conn.execute("create table duly.claims (in_the_way integer)")
            with pytest.raises(psycopg.errors.DuplicateTable):
                migrate(made.direct_url)
            assert conn.execute("select max(version) from duly.schema_versions").fetchone() == (2,)
            assert conn.execute("select to_regclass('duly.job_records')").fetchone() == (None,)
            conn.execute("drop table duly.claims")
        assert [m.version for m in migrate(made.direct_url)] == [m.version for m in migrations()[2:]]


def test_an_empty_database_is_refused_by_name(cluster: Cluster) -> None:
    with cluster.fresh(migrated=False) as made, pytest.raises(SchemaMismatch, match="run the migrations"):
        check(made.direct_url)


def test_a_newer_database_is_refused(fresh: FreshDatabase, sql: psycopg.Connection) -> None:
    sql.execute("insert into duly.schema_versions values (9999, 'future', 'x')")
    with pytest.raises(SchemaMismatch, match="update duly"):
        check(fresh.direct_url)


def test_a_rewritten_migration_is_refused(fresh: FreshDatabase, sql: psycopg.Connection) -> None:
    sql.execute("update duly.schema_versions set checksum = 'x' where version = 3")
    with pytest.raises(SchemaMismatch, match="migration 3"):
        migrate(fresh.direct_url)


def test_the_schema_can_be_made_by_a_role_that_is_no_superuser(cluster: Cluster) -> None:
    with cluster.fresh(migrated=False) as made, psycopg.connect(made.direct_url, autocommit=True) as conn:
        name = conn.info.dbname
        conn.execute(f"create role {name}_admin login createrole")
        conn.execute(
            f"grant duly_owner, duly_engine, duly_tenant, duly_operator to {name}_admin with admin option"
        )
        conn.execute(f"grant create on database {name} to {name}_admin")
        try:
            migrate(made.direct_url.replace("postgres@", f"{name}_admin@"))
            assert conn.execute(
                "select rolsuper from pg_roles where rolname = %s", [f"{name}_admin"]
            ).fetchone() == (False,)
        finally:
            conn.execute(f"drop owned by {name}_admin cascade")
            conn.execute(f"drop role {name}_admin")
