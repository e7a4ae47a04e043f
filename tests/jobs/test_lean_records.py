"""Lean records: views show what is not stored with each job, and keys of 0.9 keep their answers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, Job
from duly.db.database import Database
from duly.maintenance.layouts import LayoutSwitch

Conn = psycopg.Connection[Any]
_GENERATED = {"job_id", "result_id", "created_at", "queued_at", "run_at", "updated_at"}
_GENERATED |= {
    "event_id",
    "occurred_at",
    "commit_xid",
    "first_seen_at",
    "last_seen_at",
    "expires_at",
    "key_hash",
}
_VIEWS = ("jobs", "job_events", "idempotency_keys", "ready")


@pytest.fixture
def build(app: Duly) -> Job[[str], None]:
    """A job type."""

    @app.job("report.build", category="planning")
    async def build(region: str) -> None: ...

    return build


def write_full_records(sql: Conn) -> None:
    """Go back to before the switch: records have everything in them."""
    sql.execute("delete from duly.layouts where layout >= 3")
    sql.execute("update duly.policies set lean = false")


def rows(sql: Conn, job_id: uuid.UUID) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a job in all views, without what differs between equal jobs."""
    query = "select to_jsonb(t) from duly.{} t where job_id = %s"
    return {
        view: [
            {name: value for name, value in row.items() if name not in _GENERATED}
            for (row,) in sql.execute(query.format(view), [job_id])
        ]
        for view in _VIEWS
    }


_CALLS: dict[str, Callable[[Job[[str], None]], Any]] = {
    "plain": lambda job: job.call("DE"),
    "with an instant": lambda job: job.call("2026-04-03T12:00:00+02:00"),
    "large": lambda job: job.call("D" * 2_000),
    "in a blob": lambda job: job.call("D" * 100_000),
    "with a subject and metadata": lambda job: job.options(subject_id="doc/7", metadata={"a": [1]}).call(
        "DE"
    ),
    "with a key": lambda job: job.options(idempotency_key="k", priority=7).call("DE"),
}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", _CALLS)
async def test_a_lean_record_is_shown_like_a_full_one(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, sql: Conn, name: str, count: int
) -> None:
    fillers = [build.call(f"filler {n}") for n in range(count - 1)]
    lean, *_ = await app.enqueue_many([_CALLS[name](build), *fillers])
    policy = sql.execute("select policy from duly.job_records where job_id = %s", [lean.job_id])
    assert policy.fetchone() == (None,)
    before = rows(sql, lean.job_id)
    sql.execute("update duly.key_ledger set expires_at = now()")  # the keys are free again
    write_full_records(sql)
    full, *_ = await app.enqueue_many([_CALLS[name](build), *fillers])
    assert full.created
    assert full.job_id != lean.job_id
    [key] = before["idempotency_keys"]
    assert key["idempotency_key"] == (await full.status()).idempotency_key
    assert rows(sql, full.job_id) == before
    assert [len(found) for found in before.values()] == [1] * len(_VIEWS)


async def test_jobs_of_one_policy_store_it_once(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, sql: Conn
) -> None:
    await app.enqueue_many([build.call(f"region {n}") for n in range(5)])
    await build.enqueue("DE")
    await build.options(priority=3).enqueue("FR")
    found = sql.execute("select policy ->> 'priority', priority from duly.policies order by 2").fetchall()
    assert found == [("0", 0), ("3", 3)]


async def test_a_transaction_may_enqueue_more_than_once_for_an_org(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, database: Database, sql: Conn
) -> None:
    async with database.tenant(acting) as conn:
        one = await build.options(conn=conn).enqueue("DE")
        two = await build.options(conn=conn).enqueue("FR")
        more = await app.enqueue_many([build.call(f"region {n}") for n in range(2_500)], conn=conn)
    found = sql.execute("select job_id from duly.all_events where event_type = 'job.queued'").fetchall()
    assert sorted(job for (job,) in found) == sorted(handle.job_id for handle in (one, two, *more))
    sizes = sql.execute("select job_count from duly.event_batches order by first_job").fetchall()
    assert sizes == [(1,), (1,), (1_000,), (1_000,), (500,)]


@pytest.mark.parametrize("identity", [None, "nightly"])
async def test_an_open_transaction_that_stores_a_policy_delays_no_other(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, database: Database, sql: Conn, identity: str | None
) -> None:
    """Jobs with an identity have the policy in their record until it is committed."""
    async with database.tenant(acting) as conn:
        await build.options(conn=conn, run_identity=identity).enqueue("DE")
        async with asyncio.timeout(30):
            await build.options(run_identity=identity and "other").enqueue("FR")
            await app.enqueue_many([build.call("IT"), build.call("AT")])
    assert sql.execute(
        "select count(*) from duly.jobs where policy ->> 'category' = 'planning'"
    ).fetchone() == (4,)
    full = sql.execute(
        "select payload ->> 'region' from duly.job_records where policy is not null"
    ).fetchall()
    assert full == ([("FR",)] if identity else [])


def as_of_0_9(sql: Conn) -> None:
    """Move all keys to the ledger of 0.9, and go back to before the switch."""
    write_full_records(sql)
    sql.execute(
        """insert into duly.ledger (org_id, idempotency_key, job_id, first_seen_at, last_seen_at, expires_at)
           select org_id, idempotency_key, job_id, first_seen_at, last_seen_at, expires_at
           from duly.idempotency_keys"""
    )
    sql.execute("delete from duly.key_ledger")


@pytest.mark.parametrize("moved", [False, True])
async def test_keys_of_0_9_return_their_jobs_before_and_after_they_move(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, sql: Conn, moved: bool
) -> None:
    first = [await build.enqueue("DE"), await build.options(idempotency_key="k").enqueue("FR")]
    as_of_0_9(sql)
    shown = "select idempotency_key, job_id, status from duly.idempotency_keys order by 1"
    before = sql.execute(shown).fetchall()
    if moved:
        await switch(app, sql)
    assert sql.execute(shown).fetchall() == before
    again = [await build.enqueue("DE"), await build.options(idempotency_key="k").enqueue("FR")]
    assert [(h.job_id, h.created) for h in again] == [(h.job_id, False) for h in first]
    assert sql.execute(shown).fetchall() == before
    assert (await build.enqueue("IT")).created


async def test_an_expired_key_of_0_9_is_free(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, sql: Conn
) -> None:
    first = await build.enqueue("DE")
    as_of_0_9(sql)
    sql.execute("update duly.ledger set expires_at = now()")
    second = await build.enqueue("DE")
    assert second.created
    assert second.job_id != first.job_id


async def switch(app: Duly, sql: Conn) -> list[timedelta]:
    """Run the chore until there is nothing more to do; return how long it waited each time."""
    chore, waits = LayoutSwitch(app), [await LayoutSwitch(app).once()]
    while waits[-1] < timedelta(hours=1):
        waits.append(await chore.once())
    assert sql.execute("select count(*) from duly.ledger").fetchone() == (0,)
    assert sql.execute("select max(layout) from duly.layouts").fetchone() == (4,)
    return waits


async def test_keys_move_in_batches_while_jobs_are_enqueued(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, sql: Conn
) -> None:
    handles = await app.enqueue_many([build.call(f"region {n}") for n in range(2_300)])
    as_of_0_9(sql)
    sql.execute("update duly.ledger set expires_at = now() where job_id = %s", [handles[0].job_id])
    moving = asyncio.create_task(switch(app, sql))
    again = [await build.enqueue(f"region {n}") for n in range(2_299, 2_200, -1)]
    assert [(h.job_id, h.created) for h in again] == [
        (handles[n].job_id, False) for n in range(2_299, 2_200, -1)
    ]
    assert len(await moving) >= 3
    assert sql.execute("select count(*) from duly.key_ledger").fetchone() == (2_299,), (
        "but for the expired one"
    )


async def test_workers_of_the_previous_release_keep_records_full(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, sql: Conn
) -> None:
    sql.execute("delete from duly.layouts")
    sql.execute(
        "insert into duly.workers (worker_id, name, host, pid, version, layout, queues, slots, lease) "
        "values (gen_random_uuid(), 'old', 'h', 1, '0.9.0', 1, '{q:default}', 1, '30 s')"
    )
    assert await LayoutSwitch(app).once() == timedelta(minutes=1)
    await build.enqueue("DE")
    await app.enqueue_many([build.call("FR"), build.call("IT")])
    assert sql.execute("select count(*), count(policy) from duly.job_records").fetchone() == (3, 3)
    assert sql.execute("select count(*) from duly.event_log").fetchone() == (3,)


async def test_a_policy_that_the_switch_did_not_see_is_used_by_lean_records_after_it(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, sql: Conn
) -> None:
    lean = "select payload ->> 'region' from duly.job_records where queued_xid is not null order by 1"
    unseen = "update duly.policies set lean = false"  # its transaction had not committed yet
    await build.enqueue("DE")
    sql.execute(unseen)
    await build.enqueue("FR")
    sql.execute(unseen)
    await app.enqueue_many([build.call("IT"), build.call("NL")])
    assert sql.execute(lean).fetchall() == [("DE",), ("FR",), ("IT",), ("NL",)]
    assert sql.execute("select lean from duly.policies").fetchall() == [(True,)]


async def test_a_queue_that_jobs_were_sent_to_cannot_be_deleted(
    build: Job[[str], None], acting: uuid.UUID, sql: Conn
) -> None:
    await build.enqueue("DE")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        sql.execute("delete from duly.queues where queue = 'q:planning'")


async def test_a_queue_can_be_paused_while_a_transaction_stores_the_first_policy_that_names_it(
    app: Duly, build: Job[[str], None], acting: uuid.UUID, sql: Conn
) -> None:
    async with app.tenant_session(acting) as conn:
        await build.options(conn=conn).enqueue("DE")
        async with asyncio.timeout(10):
            await app.queues.pause("q:planning", actor=Actor.user("ops"), reason="the disk is full")
