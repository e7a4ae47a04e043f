"""A replay respects that one run of an identity is active at a time."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest

from duly import Handle, errors
from duly.features.dead_letters.service import DeadLetters
from duly.testing import FreshDatabase
from tests.features.dead_letters.dead_jobs import OPS, WHY, Bury, dump_resolution_rows, wait_for_lock_waiter


async def test_a_replay_carries_the_run_identity(
    dead_letters: DeadLetters, bury: Bury, send: Any, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury(run_identity="nightly")
    handle = await dead_letters.replay(acting, old, OPS, WHY)
    joined = await send.options(run_identity="nightly").enqueue("z")
    assert joined.job_id == handle.job_id
    assert sql.execute("select job_id from duly.active_runs").fetchall() == [(handle.job_id,)]


async def test_a_replay_waits_for_the_active_run_of_its_identity(
    dead_letters: DeadLetters, bury: Bury, send: Any, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury(run_identity="nightly")
    active = await send.options(run_identity="nightly").enqueue("z")
    before = dump_resolution_rows(sql)
    with pytest.raises(errors.Conflict, match=f"held by {active.job_id}") as refused:
        await dead_letters.replay(acting, old, OPS, WHY)
    assert not isinstance(refused.value, errors.AlreadyResolved)
    assert dump_resolution_rows(sql) == before, "the letter is still open, and no key is spent"
    await active.cancel("make way")
    assert (await dead_letters.replay(acting, old, OPS, WHY)).created


async def test_a_replay_and_a_new_run_of_one_identity_at_once_make_one_run(
    dead_letters: DeadLetters, bury: Bury, send: Any, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    for n in range(10):
        old = await bury(str(n), run_identity="nightly")
        fresh = send.options(run_identity="nightly", idempotency_key=f"fresh-{n}").enqueue("z")
        replayed, joined = await asyncio.gather(
            dead_letters.replay(acting, old, OPS, WHY), fresh, return_exceptions=True
        )
        assert isinstance(joined, Handle)
        letter = await dead_letters.get(acting, old)
        if isinstance(replayed, Handle):
            assert joined.job_id == replayed.job_id == letter.successor_job_id
        else:
            assert isinstance(replayed, errors.Conflict)
            assert letter.resolution is None
            keys = "select count(*) from duly.idempotency_keys where idempotency_key like %s"
            assert sql.execute(keys, [f"replay:{old}%"]).fetchone() == (0,)
        await joined.cancel("next round")


@pytest.mark.parametrize("many", [False, True])
async def test_a_run_identity_taken_after_the_plan_leaves_no_ledger_entry(
    dead_letters: DeadLetters,
    bury: Bury,
    send: Any,
    acting: uuid.UUID,
    fresh: FreshDatabase,
    sql: psycopg.Connection,
    many: bool,
) -> None:
    old = await bury(run_identity="nightly")
    async with await psycopg.AsyncConnection.connect(fresh.direct_url) as conn:
        active = await send.options(run_identity="nightly", conn=conn).enqueue("z")
        action = (
            dead_letters.replay_many(acting, per_second=1, actor=OPS, reason=WHY)
            if many
            else dead_letters.replay(acting, old, OPS, WHY)
        )
        replaying = asyncio.create_task(action)
        await wait_for_lock_waiter(sql)
        await conn.commit()
    if many:
        assert (await replaying).left == {old: f"its run identity is held by {active.job_id}"}
    else:
        with pytest.raises(errors.Conflict, match=f"held by {active.job_id}"):
            await replaying
    keys = sql.execute(
        "select idempotency_key from duly.idempotency_keys where idempotency_key like 'replay:%'"
    )
    assert keys.fetchall() == []
    assert (await dead_letters.get(acting, old)).resolution is None
