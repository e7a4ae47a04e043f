"""What was claimed is cleaned up soon."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from duly import Duly
from duly.upkeep.tidier import Tidier
from tests.worker.working import until

VACUUMED = "select vacuum_count from pg_stat_user_tables where schemaname = 'duly' and relname = 'ready'"


@pytest.fixture
async def littered(app: Duly, acting: uuid.UUID, sql: psycopg.Connection) -> None:
    @app.job("step.take")
    async def take(n: int) -> int:
        return n

    await app.enqueue_many([take.call(n) for n in range(200)])
    sql.execute("delete from duly.ready")
    dead = "select n_dead_tup >= 200 from pg_stat_user_tables where schemaname = 'duly' and relname = 'ready'"
    await until(sql, f"select pg_stat_force_next_flush() is not null and ({dead})")


@pytest.mark.usefixtures("littered")
async def test_dead_rows_of_the_queue_are_removed(app: Duly, sql: psycopg.Connection) -> None:
    before = sql.execute(VACUUMED).fetchone()
    await Tidier(app, most=100).once()
    after = sql.execute(VACUUMED).fetchone()
    assert before
    assert after == (before[0] + 1,)


@pytest.mark.usefixtures("littered")
async def test_a_few_are_left_alone(app: Duly, sql: psycopg.Connection) -> None:
    before = sql.execute(VACUUMED).fetchone()
    await Tidier(app, most=1_000).once()
    assert sql.execute(VACUUMED).fetchone() == before
