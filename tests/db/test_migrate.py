"""Migrations: order, concurrency, failures, privileges, and the resulting schema."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from duly import Actor, Duly, context
from duly.core.errors import SchemaMismatch
from duly.db import migrate as store_migrate
from duly.db.migrate import Migration, check, migrate, migrations, squashed
from duly.db.schema_snapshot import snapshot
from duly.testing import DatabaseCluster, FreshDatabase
from tests.db.extra_migration import add_migration

SNAPSHOT = Path(__file__).with_name("schema.txt")
BASELINE = 26
"""The number of the last migration of 0.9.0, which is that of the baseline."""


def test_the_schema_equals_the_reviewed_snapshot(sql: psycopg.Connection) -> None:
    """Regenerate with `./dev snapshot`, and review the difference."""
    assert snapshot(sql).splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


def test_versions_are_numbered_without_gaps() -> None:
    before = squashed()
    assert before
    assert {version for version, _ in before.checksums} >= set(range(1, BASELINE + 1))
    assert [m.version for m in migrations()] == list(range(BASELINE, BASELINE + len(migrations())))


def test_databases_of_earlier_texts_with_the_same_result_are_recognized(
    fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    before = squashed()
    assert before
    earlier = sorted((version, text) for version, text in before.checksums if version >= BASELINE)
    assert len({version for version, _ in earlier}) > 1
    for version, checksum in earlier:
        sql.execute("update duly.schema_versions set checksum = %s where version = %s", [checksum, version])
        check(fresh.direct_url)


def test_migrating_twice_changes_nothing(fresh: FreshDatabase) -> None:
    assert migrate(fresh.direct_url) == []
    check(fresh.direct_url)


def test_every_version_can_be_reached_step_by_step(cluster: DatabaseCluster) -> None:
    with cluster.fresh(migrated=False) as database:
        for migration in migrations():
            assert migrate(database.direct_url, upto=migration.version) == [migration]
        with psycopg.connect(database.direct_url) as conn:
            assert snapshot(conn).splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


def test_no_migration_raises_a_warning(cluster: DatabaseCluster) -> None:
    """PostgreSQL only warns about a grant or revoke without effect."""
    with cluster.fresh(migrated=False) as database, psycopg.connect(database.direct_url) as conn:
        notices: list[str] = []
        conn.add_notice_handler(lambda notice: notices.append(f"{notice.severity}: {notice.message_primary}"))
        for migration in migrations():
            conn.execute("reset role" if migration.version == BASELINE else "set local role duly_owner")
            conn.execute(migration.text)
        assert [line for line in notices if line.startswith("WARNING")] == []


def test_many_processes_may_migrate_at_once(cluster: DatabaseCluster) -> None:
    with cluster.fresh(migrated=False) as database:
        applied: list[int] = []
        threads = [
            threading.Thread(target=lambda: applied.append(len(migrate(database.direct_url))))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(applied) == [0, 0, 0, 0, 0, len(migrations())]


def test_a_failed_migration_is_rolled_back(
    fresh: FreshDatabase, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = migrations()[-1].version
    added = Migration(last + 1, "added", "create table duly.added (); create table duly.in_the_way ();")
    add_migration(monkeypatch, added)
    sql.execute("create table duly.in_the_way (by integer)")
    with pytest.raises(psycopg.errors.DuplicateTable):
        migrate(fresh.direct_url)
    assert sql.execute("select max(version) from duly.schema_versions").fetchone() == (last,)
    assert sql.execute("select to_regclass('duly.added')").fetchone() == (None,)
    sql.execute("drop table duly.in_the_way")
    assert migrate(fresh.direct_url) == [added]


def test_a_failed_baseline_is_rolled_back(cluster: DatabaseCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        cluster.fresh(migrated=False) as database,
        psycopg.connect(database.direct_url, autocommit=True) as conn,
    ):
        with monkeypatch.context() as patched:
            add_migration(patched, Migration(BASELINE, "broken", f"{migrations()[0].text}select 1 / 0;"))
            with pytest.raises(psycopg.errors.DivisionByZero):
                migrate(database.direct_url)
        assert conn.execute("select from pg_namespace where nspname = 'duly'").fetchone() is None
        assert migrate(database.direct_url) == migrations()


def test_a_migration_that_times_out_on_a_lock_is_retried(
    fresh: FreshDatabase, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "set local lock_timeout = '10ms'; alter table duly.queues add column added integer"
    added = Migration(migrations()[-1].version + 1, "added", text)
    add_migration(monkeypatch, added)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        reader.rollback()

    monkeypatch.setattr(store_migrate, "time", SimpleNamespace(sleep=wait))
    with psycopg.connect(fresh.direct_url) as reader:
        reader.execute("select * from duly.queues")
        assert migrate(fresh.direct_url) == [added]
    assert len(waits) == 1


def test_a_database_without_migrations_is_refused(cluster: DatabaseCluster) -> None:
    with (
        cluster.fresh(migrated=False) as database,
        pytest.raises(SchemaMismatch, match="migrations are missing"),
    ):
        check(database.direct_url)


def test_a_newer_database_is_refused(fresh: FreshDatabase, sql: psycopg.Connection) -> None:
    sql.execute("insert into duly.schema_versions values (9999, 'future', 'x')")
    with pytest.raises(SchemaMismatch, match="update duly"):
        check(fresh.direct_url)


def test_an_edited_migration_is_refused(fresh: FreshDatabase, sql: psycopg.Connection) -> None:
    sql.execute("update duly.schema_versions set checksum = 'x' where version = %s", [BASELINE])
    with pytest.raises(SchemaMismatch, match=f"migration {BASELINE} of duly was edited"):
        migrate(fresh.direct_url)


@pytest.fixture
def role(fresh: FreshDatabase, sql: psycopg.Connection) -> Iterator[str]:
    """A login role for this test, which inherits nothing."""
    name = f"{sql.info.dbname}_role"
    sql.execute(f"create role {name} login noinherit")
    yield name
    sql.execute(f"drop owned by {name} cascade")
    sql.execute(f"drop role {name}")


def _as(url: str, role: str) -> str:
    return url.replace("postgres@", f"{role}@", 1)


def test_a_role_that_is_no_superuser_can_migrate(
    fresh: FreshDatabase, sql: psycopg.Connection, role: str
) -> None:
    sql.execute("drop schema duly cascade")
    sql.execute(f"alter role {role} inherit createrole")
    sql.execute(f"grant duly_owner, duly_engine, duly_tenant, duly_operator to {role} with admin option")
    sql.execute(f"grant create on database {sql.info.dbname} to {role}")
    assert migrate(_as(fresh.direct_url, role)) == migrations()
    assert snapshot(sql).splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


async def test_an_application_needs_the_engine_and_the_tenant_role_only(
    fresh: FreshDatabase, sql: psycopg.Connection, role: str, tmp_path: Path
) -> None:
    sql.execute(f"grant duly_engine, duly_tenant to {role}")
    app = Duly(database_url=_as(fresh.direct_url, role), blobs_url=str(tmp_path))

    @app.job("order.confirm")
    async def confirm(order: int) -> None: ...

    async with app:
        org = uuid.uuid4()
        await app.create_org(org, "Acme")
        with context(org_id=org, actor=Actor.user("u1")):
            assert (await confirm.enqueue(1)).created
    with (
        psycopg.connect(_as(fresh.direct_url, role)) as conn,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        conn.execute("select * from duly.jobs")


def test_a_login_may_be_granted_the_functions_alone(
    fresh: FreshDatabase, sql: psycopg.Connection, role: str
) -> None:
    sql.execute(f"grant usage on schema duly to {role}")
    sql.execute(f"grant execute on function duly.enqueue, duly.cancel to {role}")
    org = uuid.uuid4()
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Acme')", [org])
    policy = (
        '{"category":"default","queue":"q:default","priority":0,"ledger_ttl":60,"retry":{"max_attempts":5}}'
    )
    sql.execute("insert into duly.job_types values ('t', %s, '{}')", [policy])
    enqueue = "select duly.enqueue(%s, 't', '{}', actor_type => 'user', actor_id => 'u', request_id => 'r')"
    with psycopg.connect(_as(fresh.direct_url, role), autocommit=True) as conn:
        [job_id] = conn.execute(enqueue, [org]).fetchone()
        cancel = conn.execute("select duly.cancel(%s, %s, 'user', 'no', 'user', 'u')", [org, job_id])
        assert cancel.fetchone() == ("canceled",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("select * from duly.job_records")
