"""Partitions are created ahead of time; rows without one go to the default partition."""

from __future__ import annotations

import threading
from contextlib import suppress

import psycopg
import pytest

from duly.testing import FreshDatabase


def _partitions(sql: psycopg.Connection, parent: str) -> list[str]:
    query = "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass order by 1"
    return [name for (name,) in sql.execute(query, [f"duly.{parent}"])]


def test_partitions_exist_ahead_of_time(sql: psycopg.Connection) -> None:
    for parent, step, ahead in sql.execute(
        "select parent, step, ahead from duly.partitioned_tables"
    ).fetchall():
        horizon = f"now() + {ahead} * interval '1 {step}'"
        [last] = sql.execute(
            f"select to_char(date_trunc('{step}', ({horizon}) at time zone 'UTC'), 'YYYYMMDD')"
        ).fetchone()
        assert f"duly.{parent}_{last}" in _partitions(sql, parent)


def test_ensure_partitions_is_idempotent(sql: psycopg.Connection) -> None:
    assert sql.execute("select duly.ensure_partitions()").fetchone() == (0,)


def test_ensure_partitions_creates_partitions_for_a_later_time(sql: psycopg.Connection) -> None:
    sql.execute("set duly.now = '2031-03-15T00:00:00Z'")
    sql.execute("set role duly_engine")
    [created] = sql.execute("select duly.ensure_partitions()").fetchone()
    assert created == 7 * 5 + 4 * 10
    assert "duly.job_records_20310601" in _partitions(sql, "job_records")


def test_the_primary_key_of_a_partition_is_its_newest_index(sql: psycopg.Connection) -> None:
    # While the partition is empty, the planner takes the newest of the indexes that fit a statement.
    sql.execute("set duly.now = '2031-03-15T00:00:00Z'")
    sql.execute("select duly.ensure_partitions()")
    query = """
        select p.partition from duly.partitions p
        join pg_index i on i.indrelid = format('duly.%I', p.partition)::regclass
        where p.starts_at is not null
        group by 1 having max(i.indexrelid) <> max(i.indexrelid) filter (where i.indisprimary)
    """
    found = [name for (name,) in sql.execute(query)]
    assert not [name for name in found if name.startswith("job_records_") or "_2031" in name]


def test_rows_of_the_default_partition_move_to_a_new_partition(sql: psycopg.Connection) -> None:
    sql.execute("""
        insert into duly.event_log
            (org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
        values (gen_random_uuid(), duly.uuid7_floor('2031-03-15'), 1, 'job.queued', 'queued', 0, now(),
                'user', 'u')
    """)
    assert sql.execute("select count(*) from duly.event_log_default").fetchone() == (1,)
    sql.execute("set duly.now = '2031-03-15T00:00:00Z'")
    sql.execute("set role duly_engine")
    sql.execute("select duly.ensure_partitions()")
    sql.execute("reset role")
    assert sql.execute("select count(*) from duly.event_log_default").fetchone() == (0,)
    assert sql.execute("select tableoid::regclass::text from duly.event_log").fetchone() == (
        "duly.event_log_20310310",
    )


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Kiritimati"])
def test_partition_bounds_do_not_depend_on_the_session_time_zone(sql: psycopg.Connection, zone: str) -> None:
    sql.execute(f"set timezone = '{zone}'")
    sql.execute("set duly.now = '2031-03-15T00:00:00Z'")
    sql.execute("select duly.ensure_partitions()")
    query = """
        select c.relname, pg_get_expr(c.relpartbound, c.oid) from pg_class c
        where c.relname in ('audit_entries_20310401', 'job_states_20310401') order by 1
    """
    sql.execute("set timezone = 'UTC'")
    audit, states = sql.execute(query).fetchall()
    assert audit[1] == "FOR VALUES FROM ('2031-04-01 00:00:00+00') TO ('2031-05-01 00:00:00+00')"
    low, high = sql.execute(
        "select duly.uuid7_floor('2031-04-01Z'), duly.uuid7_floor('2031-05-01Z')"
    ).fetchone()
    assert states[1] == f"FOR VALUES FROM ('{low}') TO ('{high}')"


def test_a_uuid7_contains_its_creation_time(sql: psycopg.Connection) -> None:
    query = "select abs(extract(epoch from duly.uuid7_time(duly.uuid7()) - clock_timestamp())) < 5"
    assert sql.execute(query).fetchone() == (True,)
    [created] = sql.execute("select duly.uuid7()").fetchone()
    assert (created.version, created.variant) == (7, "specified in RFC 4122")


def test_uuid7s_sort_by_creation(sql: psycopg.Connection) -> None:
    created = [row[0] for _ in range(300) for row in sql.execute("select duly.uuid7()")]
    assert created == sorted(created)
    assert len({each.int >> 80 for each in created}) < len(created), (
        "the test needs several ids of one millisecond"
    )


def test_result_ids_have_128_random_bits(sql: psycopg.Connection) -> None:
    ids = [row[0].int for row in sql.execute("select duly.random_id() from generate_series(1, 400)")]
    assert len(set(ids)) == len(ids)
    for bit in range(128):
        share = sum(i >> bit & 1 for i in ids) / len(ids)
        assert 0.3 < share < 0.7, f"bit {bit} is not random"


def _ensure_partitions(conn: psycopg.Connection) -> int:
    """Create the partitions; retry on a lock timeout, which a slow machine may cause."""
    while True:
        with suppress(psycopg.errors.LockNotAvailable):
            return conn.execute("select duly.ensure_partitions()").fetchone()[0]


def test_concurrent_calls_create_each_partition_once(fresh: FreshDatabase) -> None:
    created: list[int] = []

    def create() -> None:
        with psycopg.connect(fresh.direct_url, autocommit=True) as conn:
            conn.execute("set duly.now = '2031-03-15T00:00:00Z'")
            created.append(_ensure_partitions(conn))

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(created) == [0, 0, 0, 75]


def test_ensure_partitions_gives_up_on_a_table_lock_quickly(
    fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    sql.execute("set duly.now = '2031-03-15T00:00:00Z'")
    with psycopg.connect(fresh.direct_url) as reader:
        reader.execute("select count(*) from duly.event_log")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            sql.execute("select duly.ensure_partitions()")
    assert sql.execute("select duly.ensure_partitions()").fetchone() == (75,)
