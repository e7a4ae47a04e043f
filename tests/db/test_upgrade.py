"""Upgrades from 0.9.0: schema and rows stay correct, and a worker finishes the jobs of the old database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from duly import Actor, Duly, Status, context
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.schema import SCHEMA
from duly.core.errors import SchemaMismatch
from duly.core.schema import Schema
from duly.db.migrate import ENGINE, Migration, check, migrate, migrations
from duly.features.audit.sealer import Sealer
from duly.features.events.relay import Relay
from duly.features.notifications.channels import Message
from duly.maintenance.layouts import LayoutSwitch
from duly.maintenance.reaper import Reaper
from duly.testing import DatabaseCluster, FreshDatabase
from tests.db.catalog import catalog
from tests.db.extra_migration import add_migration
from tests.db.make_release import ACME, BAKERY, OPS
from tests.db.open_transactions import wait_for_transactions
from tests.db.release import Conn, restore, restore_older
from tests.worker.working import WAIT_TIMEOUT, working

RELEASED = {
    "0.1.0": 9,
    "0.2.0": 15,
    "0.3.0": 17,
    "0.4.0": 20,
    "0.5.0": 21,
    "0.6.0": 22,
    "0.7.0": 23,
    "0.8.0": 23,
}
"""The last migration of each release before 0.9.0."""
SCHEMAS = (ENGINE, SCHEMA)
ACTIVE = "select org_id, job_id from duly.jobs where finished_at is null and run_at < '2900-01-01'"


@pytest.fixture
def fresh(cluster: DatabaseCluster) -> Iterator[FreshDatabase]:
    """The restored database of the release."""
    with cluster.fresh(migrated=False) as database:
        with psycopg.connect(database.direct_url, autocommit=True) as conn:
            restore(conn)
        yield database


def upgrade(database: FreshDatabase) -> list[Migration]:
    return [applied for schema in SCHEMAS for applied in migrate(database.direct_url, schema)]


@contextmanager
def empty(
    cluster: DatabaseCluster, *, at: str = "2026-11-17 12:00+00"
) -> Iterator[tuple[FreshDatabase, Conn]]:
    """Create an empty database with a fixed `duly.now`, for which its partitions are created."""
    with cluster.fresh(migrated=False) as database:
        with psycopg.connect(database.direct_url, autocommit=True) as conn:
            conn.execute(f"alter database {conn.info.dbname} set duly.now = '{at}'")
        with psycopg.connect(database.direct_url, autocommit=True) as conn:
            yield database, conn


def columns(sql: Conn) -> dict[str, str]:
    """Return the columns of every table except schema_versions."""
    query = """
        select c.oid::regclass::text, string_agg(quote_ident(a.attname), ', ' order by a.attnum)
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relnamespace in ('duly'::regnamespace, 'documents'::regnamespace)
          and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'schema_versions'
        group by c.oid
    """
    return dict(sql.execute(query).fetchall())


def rows(sql: Conn, columns_by_table: dict[str, str]) -> dict[str, list[str]]:
    """Return the rows of these tables, as text of these columns."""
    read = "select row({})::text from {} order by 1"
    return {
        table: [row for (row,) in sql.execute(read.format(columns_by_table[table], table))]
        for table in columns_by_table
    }


def test_the_baseline_counts_as_applied(fresh: FreshDatabase) -> None:
    later_migrations = [m for schema in SCHEMAS for m in migrations(schema)[1:]]
    assert upgrade(fresh) == later_migrations
    check(fresh.direct_url, SCHEMA)
    assert upgrade(fresh) == []


def test_an_upgraded_schema_equals_that_of_a_new_database(
    cluster: DatabaseCluster, fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    upgrade(fresh)
    at = sql.execute("select min(created_at at time zone 'UTC') from duly.queues").fetchone()
    assert at
    with empty(cluster, at=f"{at[0]}+00") as (new, conn):
        upgrade(new)
        for schema in SCHEMAS:
            assert catalog(sql, schema.name) == catalog(conn, schema.name)


def test_a_new_database_has_the_same_seed_rows_as_an_upgraded_one(cluster: DatabaseCluster) -> None:
    with empty(cluster) as (old, before), empty(cluster) as (new, after):
        for schema in SCHEMAS:
            restore_older(before, migrations(schema)[0].version, schema)
        assert upgrade(old) == [m for schema in SCHEMAS for m in migrations(schema)[1:]]
        upgrade(new)
        seeded = rows(after, columns(after))
        assert seeded == rows(before, columns(after))
        assert {table.removeprefix("duly.") for table in seeded if seeded[table]} == {
            *("audit_mark", "layouts", "organizations", "partitioned_tables", "queues", "relay_mark")
        }


def test_an_upgrade_keeps_every_row(fresh: FreshDatabase, sql: psycopg.Connection) -> None:
    old_columns = columns(sql)
    before = rows(sql, old_columns)
    assert [table for table in before if not before[table]] == []
    upgrade(fresh)
    after = rows(sql, old_columns)
    # Later releases have more partitioned tables.
    assert set(after["duly.partitioned_tables"]) > set(before.pop("duly.partitioned_tables"))
    assert {table: after[table] for table in before} == before


async def test_keys_return_their_jobs_after_an_upgrade_without_workers(
    fresh: FreshDatabase, sql: psycopg.Connection, app: Duly
) -> None:
    sql.execute("delete from duly.workers")
    sql.execute("update duly.ledger set expires_at = duly.now() + interval '1 day'")
    keys = sql.execute("select org_id, idempotency_key, job_id from duly.ledger order by 2").fetchall()
    upgrade(fresh)
    declare(app)
    report = app.registry.get("report.build")

    async def answered() -> list[tuple[object, ...]]:
        jobs = []
        for org, key, _ in keys:
            with context(org_id=org, actor=OPS):
                handle = await report.options(idempotency_key=key).enqueue("north")
            jobs.append((org, key, handle.job_id))
        return jobs

    assert await answered() == keys
    while await LayoutSwitch(app).once() < timedelta(days=1):
        pass
    assert sql.execute("select exists (select from duly.ledger)").fetchone() == (False,)
    assert await answered() == keys


def test_a_role_that_could_enqueue_before_an_upgrade_can_enqueue_after_it(
    fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    sql.execute("create role shop_of_upgrade")
    try:
        sql.execute("grant execute on function duly.enqueue_jobs to shop_of_upgrade")
        upgrade(fresh)
        call = "duly.enqueue_batch(uuid,json,json,uuid[],uuid[],jsonb,integer[],text[],json,boolean)"
        allowed = "select has_function_privilege('shop_of_upgrade', %s, 'execute')"
        assert sql.execute(allowed, [call]).fetchone() == (True,)
    finally:
        sql.execute("drop owned by shop_of_upgrade")
        sql.execute("drop role shop_of_upgrade")


def test_later_migrations_apply_on_top(
    fresh: FreshDatabase, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(fresh)
    added = Migration(migrations()[-1].version + 1, "added", "create table duly.added ()")
    add_migration(monkeypatch, added)
    with pytest.raises(SchemaMismatch, match="1 migrations are missing"):
        check(fresh.direct_url)
    assert upgrade(fresh) == [added]
    assert sql.execute("select tableowner from pg_tables where tablename = 'added'").fetchone() == (
        "duly_owner",
    )
    check(fresh.direct_url, SCHEMA)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_an_edited_migration_of_the_release_is_refused(
    fresh: FreshDatabase, sql: psycopg.Connection, schema: Schema
) -> None:
    sql.execute(f"update {schema.name}.schema_versions set checksum = 'x' where version = 3")
    for use in (migrate, lambda url, schema: check(url, schema)):
        with pytest.raises(SchemaMismatch, match=f"migration 3 of {schema.name} was edited"):
            use(fresh.direct_url, schema)


@pytest.mark.parametrize("release", RELEASED)
def test_a_database_older_than_the_release_must_upgrade_to_it_first(
    cluster: DatabaseCluster, release: str
) -> None:
    with (
        cluster.fresh(migrated=False) as database,
        psycopg.connect(database.direct_url, autocommit=True) as conn,
    ):
        restore_older(conn, RELEASED[release])
        for use in (migrate, check):
            with pytest.raises(SchemaMismatch, match=r"older than 0\.9\.0 \(upgrade to 0\.9\.0 and run"):
                use(database.direct_url)
        assert conn.execute("select max(version) from duly.schema_versions").fetchone() == (
            RELEASED[release],
        )


def test_a_documents_schema_older_than_the_release_must_upgrade_to_it_first(cluster: DatabaseCluster) -> None:
    with cluster.fresh() as database, psycopg.connect(database.direct_url, autocommit=True) as conn:
        restore_older(conn, 5, SCHEMA)
        with pytest.raises(SchemaMismatch, match=r"at version 5 of documents, older than 0\.9\.0"):
            migrate(database.direct_url, SCHEMA)


class RecordingChannel:
    """A channel that records its messages."""

    def __init__(self) -> None:
        self.mails: list[Message] = []

    async def send(self, message: Message) -> None:
        self.mails.append(message)


def declare(app: Duly) -> None:
    """Declare the job types of the installation; here they all succeed."""

    @app.job("report.build", queue="q:planning")
    async def build(region: str) -> str:
        return region

    @app.job("report.hold")
    async def hold(n: int) -> int:
        return n

    @app.job("prices.check")
    async def prices(shops: list[str]) -> int:
        return len(shops)

    @app.job("invoice.book")
    async def book(number: str) -> None: ...

    @app.job("mail.send")
    async def send(to: str) -> None: ...

    @app.job("stock.check", category="maintenance")
    async def count(warehouse: str) -> None: ...

    @app.job("import.run", queue="q:exports")
    async def bring_in(n: int) -> None: ...


async def test_a_worker_finishes_the_jobs_of_an_upgraded_database(
    fresh: FreshDatabase, sql: psycopg.Connection, app: Duly
) -> None:
    upgrade(fresh)
    declare(app)
    app.include_documents()
    channel = RecordingChannel()
    app.notifications.add_channel("email", channel)
    active = sql.execute(ACTIVE).fetchall()
    await app.queues.resume("q:exports", actor=OPS, reason="there is room again")
    await app.limits.resume(BAKERY, "report.build", actor=OPS, reason="they have paid")
    while await Reaper(app).once() == timedelta(0):
        pass
    async with working(app):
        ended = [await app.handle(job, org_id=org).wait(WAIT_TIMEOUT) for org, job in active]
    # Lost workers held the jobs of attempt 2, the mail had failed once, and one job had a cancel request.
    assert Counter((job.job_type, str(job.status), job.attempt) for job in ended) == {
        ("report.build", "completed", 1): 5,
        ("report.hold", "completed", 2): 2,
        ("report.hold", "canceled", 1): 1,
        ("prices.check", "completed", 2): 1,
        ("mail.send", "completed", 2): 1,
        ("stock.check", "completed", 1): 1,
        ("import.run", "completed", 1): 1,
        ("duly.notify", "completed", 1): 1,
    }
    assert [mail.recipient for mail in channel.mails] == ["ops@example.com"]


async def test_the_audit_chain_verifies_and_continues_after_an_upgrade(
    fresh: FreshDatabase, sql: psycopg.Connection, app: Duly
) -> None:
    upgrade(fresh)
    before = [report async for report in app.audit.verify_all()]
    assert [report.problems for report in before if report.problems] == []
    assert sum(report.sealed for report in before) == 52
    assert sum(report.unsealed for report in before) == 1
    await app.orgs.rename(ACME, "Acme Ltd", actor=OPS, reason="they have grown")
    wait_for_transactions(sql)
    await Sealer(app).once()
    after = [report async for report in app.audit.verify_all()]
    assert [report.problems for report in after if report.problems] == []
    assert sum(report.sealed for report in after) == 54


async def test_search_dead_letters_webhooks_and_schedules_work_after_an_upgrade(
    fresh: FreshDatabase, sql: psycopg.Connection, app: Duly
) -> None:
    upgrade(fresh)
    declare(app)
    app.include_documents()
    results = await app.documents.search(
        DocumentPrincipal(ACME, Actor.user("anna")), "Mietvertrag Hauptstrasse"
    )
    assert [hit.page for hit in results.hits][:1] == [1]
    open_letters = (await app.dead_letters.list(ACME)).letters
    assert len(open_letters) == 4
    replayed = await app.dead_letters.replay(ACME, open_letters[0].job_id, Actor.user("anna"), "once more")
    async with working(app):
        assert (await replayed.wait(WAIT_TIMEOUT)).status is Status.COMPLETED
    wait_for_transactions(sql)
    deliveries = "select count(*) from duly.webhook_deliveries where job_id = %s"
    assert sql.execute(deliveries, [replayed.job_id]).fetchone() == (0,)
    while await Relay(app).once() == timedelta(0):
        pass
    assert sql.execute(deliveries, [replayed.job_id]).fetchone() == (1,)
    assert {tick.disposition for tick in await app.schedules.ticks(ACME, "stock")} == {"enqueued", "missed"}
