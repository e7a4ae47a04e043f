"""The sealer: every entry is sealed once, with many sealers and late commits."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from duly import Actor, Duly
from duly.db.database import Database
from duly.db.pool import Connection
from duly.features.audit import store as audit
from duly.features.audit.chain import verify
from duly.features.audit.sealer import Sealer
from duly.jobs import store as job_store
from tests.db.open_transactions import wait_for_transactions

ANNA = Actor.operator("anna")
EVERY = timedelta(seconds=10)


async def note(conn: Connection, org: uuid.UUID, action: str = "queue.paused", **detail: Any) -> None:
    await job_store.record_audit_entry(
        conn, org_id=org, actor=ANNA, action=action, target_type="queue", target_id="q:default", detail=detail
    )


async def written(database: Database, org: uuid.UUID, *actions: str) -> None:
    async with database.engine() as conn:
        for action in actions:
            await note(conn, org, action)


def rows(sql: psycopg.Connection, table: str) -> list[dict[str, Any]]:
    with sql.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(f"select * from duly.{table}").fetchall()


def right(sql: psycopg.Connection) -> bool:
    """Return whether every entry is sealed once, and the chains are valid."""
    entries, seals = rows(sql, "audit_entries"), rows(sql, "audit_seals")
    covered = [(seal["org_id"], entry) for seal in seals for entry in seal["entry_ids"]]
    assert sorted(covered) == sorted((entry["org_id"], entry["entry_id"]) for entry in entries)
    return verify(entries, seals) == []


@pytest.fixture
async def open_sessions(database: Database) -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def sealing(sql: psycopg.Connection, sealer: Sealer) -> timedelta:
    """Run one round after all transactions have ended."""
    wait_for_transactions(sql)
    return await sealer.once()


async def test_each_org_gets_a_seal_for_its_new_entries(
    app: Duly, database: Database, sql: psycopg.Connection
) -> None:
    one, two = uuid.uuid4(), uuid.uuid4()
    sealer = Sealer(app)
    assert await sealing(sql, sealer) == EVERY
    await written(database, one, "a", "b")
    await written(database, two, "c")
    assert await sealing(sql, sealer) == EVERY
    await written(database, one, "d")
    assert await sealing(sql, sealer) == EVERY
    found = sql.execute("select org_id, seal_seq, entry_count from duly.audit_seals order by 2, 3").fetchall()
    assert found == [(two, 1, 1), (one, 1, 2), (one, 2, 1)]
    assert right(sql)
    assert await sealing(sql, sealer) == EVERY
    assert len(rows(sql, "audit_seals")) == 3


async def test_a_round_is_bounded_and_repeats_at_once_while_entries_remain(
    app: Duly, database: Database, sql: psycopg.Connection
) -> None:
    org = uuid.uuid4()
    await written(database, org, *"abcde")
    sealer = Sealer(app, batch=2)
    assert [await sealing(sql, sealer) for _ in range(4)] == [timedelta(0), timedelta(0), EVERY, EVERY]
    assert [len(seal["entry_ids"]) for seal in rows(sql, "audit_seals")] == [2, 2, 1]
    assert right(sql)


async def test_an_entry_that_commits_late_is_never_behind_a_seal(
    app: Duly, database: Database, sql: psycopg.Connection, open_sessions: AsyncExitStack
) -> None:
    """It has the earlier time and the smaller id, and even the earlier transaction."""
    org = uuid.uuid4()
    late = await open_sessions.enter_async_context(database.engine())
    await note(late, org, "began first")
    await written(database, org, "began second")
    sealer = Sealer(app)
    await sealer.once()
    assert rows(sql, "audit_seals") == []
    await open_sessions.aclose()
    await sealing(sql, sealer)
    [seal] = rows(sql, "audit_seals")
    assert seal["entry_count"] == 2
    assert right(sql)


async def test_a_transaction_that_began_early_and_wrote_late_is_next_in_the_chain(
    app: Duly, database: Database, sql: psycopg.Connection, open_sessions: AsyncExitStack
) -> None:
    """Its time is before the last seal's, so a chain in the order of time would be broken by it."""
    org = uuid.uuid4()
    late = await open_sessions.enter_async_context(database.engine())
    await late.execute("select duly.now()")
    await written(database, org, "between")
    sealer = Sealer(app)
    await sealing(sql, sealer)
    await note(late, org, "began first, wrote last")
    await open_sessions.aclose()
    await sealing(sql, sealer)
    first, second = sql.execute("select last_occurred_at from duly.audit_seals order by seal_seq").fetchall()
    assert first > second
    assert right(sql)


async def test_a_rolled_back_entry_does_not_block_sealing(
    app: Duly, database: Database, sql: psycopg.Connection
) -> None:
    org = uuid.uuid4()
    with pytest.raises(ZeroDivisionError):
        async with database.engine() as conn:
            await note(conn, org)
            raise ZeroDivisionError
    await written(database, org, "a")
    await sealing(sql, Sealer(app))
    assert len(rows(sql, "audit_seals")) == 1
    assert right(sql)


async def test_sealers_and_writers_all_at_once_make_one_chain(
    app: Duly, database: Database, sql: psycopg.Connection
) -> None:
    orgs = [uuid.uuid4() for _ in range(3)]
    writing = True

    async def write(n: int) -> None:
        for turn in range(15):
            await written(database, orgs[(n + turn) % 3], *"ab")

    async def seal() -> None:
        sealer = Sealer(app, batch=7)
        while writing:
            await sealer.once()

    sealers = [asyncio.create_task(seal()) for _ in range(3)]
    await asyncio.gather(*(write(n) for n in range(4)))
    writing = False
    await asyncio.gather(*sealers)
    while not await sealing(sql, Sealer(app, batch=7)):
        pass
    assert len(rows(sql, "audit_entries")) == 120
    assert len(rows(sql, "audit_seals")) > 6
    assert right(sql)


async def test_only_one_sealer_works_at_a_time(
    app: Duly, database: Database, sql: psycopg.Connection, open_sessions: AsyncExitStack
) -> None:
    await written(database, uuid.uuid4(), "a")
    first = await open_sessions.enter_async_context(database.engine())
    wait_for_transactions(sql)
    assert await audit.lock_mark(first)
    assert await Sealer(app).once() == EVERY
    assert rows(sql, "audit_seals") == []
    await open_sessions.aclose()
    await sealing(sql, Sealer(app))
    assert right(sql)


async def test_a_seal_of_a_number_is_written_once(
    app: Duly, database: Database, sql: psycopg.Connection
) -> None:
    await written(database, uuid.uuid4(), "a")
    await sealing(sql, Sealer(app))
    with pytest.raises(psycopg.errors.UniqueViolation):
        async with database.engine() as conn:
            await conn.execute("insert into duly.audit_seals select * from duly.audit_seals")


async def test_entries_from_before_the_chain_are_sealed_first(
    app: Duly, database: Database, sql: psycopg.Connection
) -> None:
    """They share transaction 0, and are more than one batch."""
    org = uuid.uuid4()
    await written(database, org, *"abcde")
    sql.execute("update duly.audit_entries set commit_xid = '0'")
    await written(database, org, "f")
    sealer = Sealer(app, batch=2)
    while not await sealing(sql, sealer):
        pass
    assert [len(seal["entry_ids"]) for seal in rows(sql, "audit_seals")] == [2, 2, 2]
    assert right(sql)


async def test_a_mark_ahead_of_the_server_stops_sealing_and_is_logged(
    app: Duly, database: Database, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await written(database, uuid.uuid4(), "a")
    sql.execute("update duly.audit_mark set commit_xid = '9000000000'")
    with caplog.at_level(logging.ERROR, "duly.maintenance"):
        assert await sealing(sql, Sealer(app)) == EVERY
    assert "docs/operate/audit.md" in caplog.text
    assert rows(sql, "audit_seals") == []
