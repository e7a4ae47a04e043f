"""Vacuum of the queue tables."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from duly import Duly
from duly.maintenance.vacuum import QueueVacuum
from duly.testing import FreshDatabase
from tests.worker.working import until

DEAD = "(select n_dead_tup from pg_stat_user_tables where schemaname = 'duly' and relname = 'ready')"
VACUUMED = "select vacuum_count from pg_stat_user_tables where schemaname = 'duly' and relname = 'ready'"


@pytest.fixture
async def bloated(app: Duly, acting: uuid.UUID, fresh: FreshDatabase, sql: psycopg.Connection) -> None:
    if fresh.url != fresh.direct_url:
        pytest.skip("through a pooler only autovacuum cleans")

    @app.job("step.take")
    async def take(n: int) -> int:
        return n

    await app.enqueue_many([take.call(n) for n in range(200)])
    sql.execute("delete from duly.ready")
    await until(sql, f"select pg_stat_force_next_flush() is not null and ({DEAD} >= 200)")


@pytest.mark.usefixtures("bloated")
async def test_dead_rows_of_the_queue_are_removed(app: Duly, sql: psycopg.Connection) -> None:
    before = sql.execute(VACUUMED).fetchone()
    await QueueVacuum(app, max_dead_rows=100).once()
    after = sql.execute(VACUUMED).fetchone()
    assert before
    assert after == (before[0] + 1,)


@pytest.mark.usefixtures("bloated")
async def test_a_few_dead_rows_cause_no_vacuum(app: Duly, sql: psycopg.Connection) -> None:
    before = sql.execute(VACUUMED).fetchone()
    await QueueVacuum(app, max_dead_rows=1_000).once()
    assert sql.execute(VACUUMED).fetchone() == before


@pytest.mark.usefixtures("bloated")
async def test_vacuum_backs_off_while_an_old_transaction_holds_dead_rows(
    app: Duly, fresh: FreshDatabase, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    vacuum = QueueVacuum(app, max_dead_rows=100)
    with psycopg.connect(fresh.direct_url) as old:
        old.execute("set transaction isolation level repeatable read")
        old.execute("select count(*) from duly.ready")
        again = app.registry.get("step.take")
        await app.enqueue_many([again.call(n) for n in range(1_000, 1_300)])
        sql.execute("delete from duly.ready")
        await until(sql, f"select pg_stat_force_next_flush() is not null and ({DEAD} >= 300)")
        pauses = [await vacuum.once() for _ in range(3)]
    assert pauses == sorted(set(pauses))
    assert await vacuum.once() < pauses[0]
