"""Row-level security isolates tenants in the database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from duly.db.database import Database
from duly.testing import DatabaseCluster
from tests.db.tenancy import ROWS, Conn, find_isolation_gaps, insert, insert_all_rows

A, B = uuid.UUID(int=0xA), uuid.UUID(int=0xB)

TENANT_TABLES = """
    select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'duly'::regnamespace and c.relkind in ('r', 'p') and a.attname = 'org_id'
      and not a.attisdropped
"""


@pytest.fixture(scope="module")
def filled(cluster: DatabaseCluster) -> Iterator[Conn]:
    with cluster.fresh() as database, psycopg.connect(database.direct_url) as conn:
        insert_all_rows(conn, A, B)
        conn.commit()
        yield conn
        conn.rollback()


def test_every_tenant_table_is_covered(filled: Conn) -> None:
    tables = {name for (name,) in filled.execute(f"{TENANT_TABLES} and not c.relispartition")}
    assert tables == set(ROWS)


def test_row_level_security_is_forced_on_every_tenant_table(filled: Conn) -> None:
    query = f"{TENANT_TABLES} and not (c.relrowsecurity and c.relforcerowsecurity)"
    assert filled.execute(query).fetchall() == []


def test_no_org_reaches_another(filled: Conn) -> None:
    assert list(find_isolation_gaps(filled, A, B, *ROWS)) == []


def _policies(conn: Conn) -> list[tuple[str, str]]:
    query = """
        select c.relname, p.polname from pg_policy p join pg_class c on c.oid = p.polrelid
        where not c.relispartition order by 1, 2
    """
    return [(table, policy) for table, policy in conn.execute(query)]


def test_dropping_any_policy_is_detected(filled: Conn) -> None:
    policies = _policies(filled)
    assert len(policies) == 3 * len(ROWS) + 1  # and the policy of the auditor
    for table, policy in policies:
        with filled.transaction(force_rollback=True):
            filled.execute(f"drop policy {policy} on duly.{table}")
            assert list(find_isolation_gaps(filled, A, B, table)), f"{policy} on {table}"


def test_opening_any_policy_is_detected(filled: Conn) -> None:
    for table in ROWS:
        with filled.transaction(force_rollback=True):
            filled.execute(f"alter policy tenant_isolation on duly.{table} using (true) with check (true)")
            assert list(find_isolation_gaps(filled, A, B, table)), table


@pytest.mark.parametrize(
    ("table", "target", "key", "others"),
    [
        ("schedules", "projects", "project_id", {"schedule_id": uuid.uuid4(), "name": "weekly"}),
        ("schedule_ticks", "schedules", "schedule_id", {}),
    ],
)
def test_a_foreign_key_error_does_not_reveal_rows_of_another_org(
    filled: Conn, table: str, target: str, key: str, others: dict[str, object]
) -> None:
    reference = {key: uuid.uuid4()}
    messages = []
    for exists in (False, True):
        with filled.transaction(force_rollback=True):
            if exists:
                insert(filled, target, B, **reference, name="x")
            with pytest.raises(psycopg.errors.ForeignKeyViolation) as caught, filled.transaction():
                insert(filled, table, A, **reference, **others)
            messages.append(caught.value.diag.message_detail)
    assert messages[0] == messages[1]


def test_row_level_security_applies_to_direct_reads_of_partitions(filled: Conn) -> None:
    names = [name for (name,) in filled.execute(f"{TENANT_TABLES} and c.relispartition")]
    assert len(names) > 20
    for name in names:
        with filled.transaction(force_rollback=True):
            filled.execute("set local role duly_tenant")
            filled.execute("select set_config('duly.org_id', %s, true)", [str(A)])
            assert filled.execute(f"select count(*) from duly.{name}").fetchone() == (0,), name


def test_every_unique_key_begins_with_the_org(filled: Conn) -> None:
    query = f"""
        select distinct i.indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indrelid
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indisunique and a.attname <> 'org_id' and not c.relispartition
          and c.relname in ({TENANT_TABLES})
    """
    # Queue tables are ordered by claim and by promotion, and contain no key that a tenant chooses.
    assert {name for (name,) in filled.execute(query)} == {"duly.ready_pkey", "duly.scheduled_pkey"}


async def test_a_tenant_session_can_only_read(database: Database) -> None:
    for table in ROWS:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with database.tenant(A) as conn:
                await conn.execute(f"delete from duly.{table}")


async def test_the_org_of_a_session_is_reset_at_its_end(database: Database) -> None:
    async with database.tenant(A) as conn:
        pass
    async with database.engine() as conn:
        row = await (await conn.execute("select duly.current_org(), current_user")).fetchone()
    assert row == (None, "duly_engine")


@pytest.mark.parametrize(
    "table",
    [
        *("job_records", "job_ends", "event_log", "event_batches", "result_snapshots"),
        *("audit_entries", "audit_seals"),
    ],
)
async def test_the_engine_cannot_rewrite_history(database: Database, table: str) -> None:
    for verb in (f"update duly.{table} set org_id = org_id", f"delete from duly.{table}"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with database.engine() as conn:
                await conn.execute(verb)


async def test_a_key_hash_is_readable_to_the_engine_only(database: Database) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.tenant(A) as conn:
            await conn.execute("select secret_hash from duly.api_keys")
    async with database.engine() as conn:
        await conn.execute("select secret_hash from duly.api_keys")


def test_functions_are_executable_only_by_the_listed_roles(filled: Conn) -> None:
    query = """
        select p.oid::regprocedure::text, a.grantee::regrole::text
        from pg_proc p cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        where p.pronamespace = 'duly'::regnamespace and a.grantee <> p.proowner
    """
    granted: dict[str, set[str]] = {}
    for function, role in filled.execute(query):
        granted.setdefault(role, set()).add(function.split("(")[0])
    assert set(granted) <= {"duly_engine", "duly_tenant", "duly_operator", "duly_auditor"}
    names = ("now", "current_org", "uuid7_floor", "uuid7", "uuid7_time", "random_id")
    harmless = {f"duly.{name}" for name in names}
    computed = (
        "policy_of",
        "payload_hash",
        "key_prefix",
        "generated_key",
        "key_hash",
        "canonical",
        "stable_hash",
    )
    reading = {
        "duly.state_of",
        "duly.events_of",
        "duly.find_plain_claim",
        *(f"duly.{name}" for name in computed),
    }
    assert granted["duly_tenant"] == harmless | {
        "duly.enqueue",
        "duly.enqueue_jobs",
        "duly.enqueue_batch",
        "duly.enqueue_one",
        "duly.cancel",
        *reading,
    }
    assert granted["duly_operator"] == harmless | reading
    assert granted["duly_auditor"] < harmless


@pytest.mark.parametrize(
    "call", ["duly.cancel(%s, %s, 'user', 'no', 'user', 'u')", "duly.enqueue_jobs(%s, '[]', '[]')"]
)
def test_an_operator_role_cannot_enqueue_or_cancel(filled: Conn, call: str) -> None:
    with filled.transaction(force_rollback=True), pytest.raises(psycopg.errors.InsufficientPrivilege):
        filled.execute("set local role duly_operator")
        filled.execute(f"select {call}", [B, uuid.uuid4()][: call.count("%s")])
