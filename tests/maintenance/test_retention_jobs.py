"""Retention jobs: bounded, repeatable, and without long locks."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, context
from duly.blobs import BlobRef, BlobStore
from duly.core.job import SYSTEM_ORG
from duly.core.policy import Retention
from duly.db.database import Database
from duly.maintenance import retention
from duly.maintenance.retention import MAINTENANCE_SCHEDULES, Pace
from duly.testing import FreshDatabase
from duly.worker import claim as claims
from tests.db.tenancy import insert
from tests.maintenance.aging import LONG_AGO, Conn, ended, make_partitions, one, partitions, record

KEEP = Retention()
FAST = Pace(batches=100, per_second=1e6)
EVERY = ("event_log", "job_logs", "webhook_deliveries", "result_partials", "result_finals", "job_records",
         "job_states", "schedule_ticks", "job_ends", "event_batches")  # fmt: skip


@pytest.fixture
def aged(sql: Conn, org: uuid.UUID) -> Conn:
    make_partitions(sql)
    return sql


@pytest.fixture
async def blobs(app: Duly) -> BlobStore:
    return (await app.resources()).blobs


# --- partitions


async def test_a_run_drops_expired_partitions_and_keeps_the_others(
    aged: Conn, database: Database, org: uuid.UUID
) -> None:
    ended(aged, org)
    insert(aged, "audit_entries", org, occurred_at=LONG_AGO)
    young = ended(aged, org, str(one(aged, "select now()")))
    old = sum(len(partitions(aged, parent)) for parent in EVERY)
    counts = await retention.run_partitions(database, KEEP, FAST)
    assert counts == {"made": 0, "dropped": old, "deleted": 0, "answers": 0, "kept": 0, "busy": 0}
    assert [partitions(aged, parent) for parent in EVERY] == [[]] * len(EVERY)
    for table in EVERY[:7]:
        assert aged.execute(f"select job_id from duly.{table}").fetchall() == [(young,)], table
    assert one(aged, "select count(*) from duly.audit_entries") == 1
    assert one(aged, "select count(*) from duly.partitions where ends_at > now()") > 20


async def test_audit_entries_are_dropped_only_with_a_retention(
    aged: Conn, database: Database, org: uuid.UUID
) -> None:
    insert(aged, "audit_entries", org, occurred_at=LONG_AGO)
    await retention.run_partitions(database, Retention(audit=timedelta(days=365)), FAST)
    assert one(aged, "select count(*) from duly.audit_entries") == 0


async def test_a_run_is_bounded_and_the_next_run_continues(aged: Conn, database: Database) -> None:
    before = {parent: partitions(aged, parent) for parent in EVERY}
    for done in (2, 4):
        await retention.run_partitions(database, KEEP, Pace(batches=2, per_second=1e6))
        assert {parent: partitions(aged, parent) for parent in EVERY} == {
            parent: names[done:] for parent, names in before.items()
        }


async def test_a_run_logs_which_partitions_stay(
    aged: Conn, database: Database, org: uuid.UUID, caplog: pytest.LogCaptureFixture
) -> None:
    job = record(aged, org)
    insert(aged, "scheduled", org, job_id=job)
    with caplog.at_level("INFO", "duly.maintenance"):
        counts = await retention.run_partitions(database, KEEP, FAST)
    assert (counts["kept"], counts["busy"]) == (8, 0)
    assert f"partition event_log_20240115 is not dropped, kept: job {job} waits for its time" in caplog.text


async def test_the_answers_of_live_keys_are_stored_so_that_their_jobs_can_be_dropped(
    aged: Conn, app: Duly, database: Database, acting: uuid.UUID
) -> None:
    @app.job("report.build", ledger_ttl=timedelta(days=10_000))
    def build(region: str) -> None: ...

    asked = await build.options(idempotency_key="k").enqueue("DE")
    job = ended(aged, acting)
    aged.execute("update duly.key_ledger set job_id = %s", [job])
    aged.execute("delete from duly.ready")
    counts = await retention.run_partitions(database, KEEP, FAST)
    assert (counts["answers"], counts["kept"]) == (1, 0)
    again = await build.options(idempotency_key="k").enqueue("DE")
    assert (again.job_id, again.created) == (job, False)
    assert job != asked.job_id
    async with database.tenant(acting) as conn:
        row = await conn.execute("select job_id, status from duly.idempotency_keys")
        assert await row.fetchone() == (job, "succeeded")


def drop_last(sql: Conn) -> str:
    query = "select max(partition) from duly.partitions where parent = 'event_log' and ends_at is not null"
    name = str(one(sql, query))
    sql.execute(f"drop table duly.{name}")
    return name


async def test_missing_partitions_are_created(sql: Conn, database: Database) -> None:
    name = drop_last(sql)
    assert (await retention.run_partitions(database, KEEP, FAST))["made"] == 1
    assert one(sql, "select to_regclass(%s) is not null", f"duly.{name}")


async def test_a_locked_table_does_not_delay_the_others(
    aged: Conn, database: Database, fresh: FreshDatabase
) -> None:
    with psycopg.connect(fresh.direct_url) as reader:
        reader.execute("select count(*) from duly.event_log")
        counts = await retention.run_partitions(database, KEEP, FAST)
    assert counts["busy"] == 1
    assert [len(partitions(aged, parent)) for parent in EVERY] == [10, *[0] * (len(EVERY) - 1)]


async def test_creating_partitions_does_not_wait_long_for_locks(
    sql: Conn, database: Database, fresh: FreshDatabase
) -> None:
    drop_last(sql)
    with psycopg.connect(fresh.direct_url) as reader:
        reader.execute("select count(*) from duly.event_log")
        counts = await retention.run_partitions(database, KEEP, FAST)
    assert (counts["made"], counts["busy"]) == (0, 1)


async def test_jobs_are_enqueued_and_claimed_while_partitions_are_dropped(
    aged: Conn, app: Duly, database: Database, acting: uuid.UUID
) -> None:
    @app.job("step.take")
    def take(n: int) -> None: ...

    stop, enqueued, claimed = asyncio.Event(), set[uuid.UUID](), set[uuid.UUID]()

    async def enqueue() -> None:
        while not stop.is_set():
            enqueued.add((await take.enqueue(len(enqueued))).job_id)

    async def claim(enqueuing: asyncio.Task[None]) -> None:
        while not enqueuing.done() or claimed != enqueued:
            async with database.engine() as conn:
                taken = await claims.claim_jobs(
                    conn, worker_id=uuid.uuid4(), claim_id=uuid.uuid4(), lane="q:default", slots=10,
                    after_org=uuid.UUID(int=0),
                )  # fmt: skip
            claimed.update(job.job_id for job in taken.jobs)

    async with asyncio.TaskGroup() as group:
        group.create_task(claim(group.create_task(enqueue())))
        while any(partitions(aged, parent) for parent in EVERY):
            await retention.run_partitions(database, KEEP, FAST)
        stop.set()
    assert len(enqueued) > 10
    assert one(aged, "select count(*) from duly.job_states where status = 'running'") == len(enqueued)


# --- the ledger


def fill_ledger(sql: Conn, org: uuid.UUID, count: int) -> None:
    sql.execute(
        """
        insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
        select %s, duly.key_hash('k' || n), duly.uuid7(), now(), now() - interval '1 second'
        from generate_series(1, %s) n
        """,
        [org, count],
    )


async def test_expired_keys_are_deleted_in_batches(sql: Conn, database: Database, org: uuid.UUID) -> None:
    fill_ledger(sql, org, 1200)
    insert(sql, "key_ledger", org, key_hash=b"alive", expires_at="infinity")
    assert await retention.run_expire_ledger(database, Pace(2, 1e6)) == {"deleted": 1000}
    assert await retention.run_expire_ledger(database, Pace(2, 1e6)) == {"deleted": 200}
    assert sql.execute("select key_hash from duly.key_ledger").fetchall() == [(b"alive",)]


async def test_a_deleted_key_can_be_used_again(
    app: Duly, database: Database, acting: uuid.UUID, sql: Conn
) -> None:
    @app.job("step.take")
    def take(n: int) -> None: ...

    first = await take.enqueue(1)
    sql.execute("update duly.key_ledger set expires_at = now() - interval '1 second'")
    await retention.run_expire_ledger(database, FAST)
    assert (await first.status()).status == "queued"
    second = await take.enqueue(1)
    assert second.created
    assert second.job_id != first.job_id


async def test_batches_are_paced(sql: Conn, database: Database, org: uuid.UUID) -> None:
    fill_ledger(sql, org, 1100)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await retention.run_expire_ledger(database, Pace(batches=10, per_second=10))
    assert loop.time() - began >= 0.2


# --- clean-up


async def test_workers_that_stopped_long_ago_are_deleted(
    sql: Conn, database: Database, blobs: BlobStore
) -> None:
    query = """
        insert into duly.workers
            (worker_id, name, host, pid, version, layout, queues, slots, lease, stopped_at, lost_at)
        values (gen_random_uuid(), %s, 'h', 1, '1', 4, '{}', 1, '1 minute', %s, %s) returning worker_id
    """
    ago = {days: one(sql, "select now() - %s * interval '1 day'", days) for days in (6, 8)}
    one(sql, query, "stopped long ago", ago[8], None)
    one(sql, query, "lost long ago", None, ago[8])
    one(sql, query, "stopped lately", ago[6], None)
    one(sql, query, "working", None, None)
    holding = one(sql, query, "left jobs behind", None, ago[8])
    claim = "insert into duly.claims values (gen_random_uuid(), %s, now(), '{}', '{}')"
    sql.execute(claim, [holding])
    counts = await retention.run_clean_up(database, blobs, KEEP, FAST)
    assert counts["workers"] == 2
    left = {name for (name,) in sql.execute("select name from duly.workers")}
    assert left == {"stopped lately", "working", "left jobs behind"}


async def test_an_expired_artifact_is_deleted_with_its_blob(
    sql: Conn, database: Database, blobs: BlobStore, org: uuid.UUID
) -> None:
    expired, alive = [await _artifact(sql, blobs, org, at) for at in ("2024-01-01T00:00:00Z", "infinity")]
    counts = await retention.run_clean_up(database, blobs, KEEP, FAST)
    assert (counts["artifacts"], counts["blobs"]) == (1, 1)
    assert not await blobs.exists(expired, org_id=org)
    assert await blobs.exists(alive, org_id=org)
    assert sql.execute("select blob_ref from duly.artifacts").fetchall() == [(str(alive),)]
    assert one(sql, "select count(*) from duly.released_blobs") == 0


async def _artifact(
    sql: Conn, blobs: BlobStore, org: uuid.UUID, expires_at: str | None, job: uuid.UUID | None = None
) -> BlobRef:
    ref = await blobs.put(org, uuid.uuid4().bytes)
    young = one(sql, "select duly.uuid7()")
    insert(
        sql,
        "artifacts",
        org,
        artifact_id=uuid.uuid4(),
        job_id=job or young,
        blob_ref=str(ref),
        expires_at=expires_at,
    )
    return ref


def _as_artifact(sql: Conn, org: uuid.UUID, ref: BlobRef) -> None:
    # A random id would, now and then, be that of a job of long ago.
    young = one(sql, "select duly.uuid7()")
    insert(sql, "artifacts", org, artifact_id=uuid.uuid4(), name="other", blob_ref=str(ref), job_id=young)


def _as_payload(sql: Conn, org: uuid.UUID, ref: BlobRef) -> None:
    record(sql, org, str(one(sql, "select now()")), payload_ref=str(ref))


def _as_result(sql: Conn, org: uuid.UUID, ref: BlobRef) -> None:
    insert(sql, "result_snapshots", org, payload_ref=str(ref))


@pytest.mark.parametrize("name_it", [_as_artifact, _as_payload, _as_result])
async def test_a_referenced_blob_is_not_removed(
    sql: Conn, database: Database, blobs: BlobStore, org: uuid.UUID, name_it: Callable[..., None]
) -> None:
    ref = await _artifact(sql, blobs, org, "2024-01-01T00:00:00Z")
    name_it(sql, org, ref)
    counts = await retention.run_clean_up(database, blobs, KEEP, FAST)
    assert (counts["artifacts"], counts["blobs"]) == (1, 0)
    assert await blobs.exists(ref, org_id=org)
    assert one(sql, "select count(*) from duly.released_blobs") == 0


async def test_the_artifacts_of_a_dropped_job_are_deleted(
    aged: Conn, database: Database, blobs: BlobStore, org: uuid.UUID
) -> None:
    gone, there = ended(aged, org), record(aged, org)
    insert(aged, "ready", org, job_id=there)
    refs = [await _artifact(aged, blobs, org, at, job) for job in (gone, there) for at in (None,)]
    assert (await retention.run_clean_up(database, blobs, KEEP, FAST))["artifacts"] == 0
    aged.execute("delete from duly.job_records where job_id = %s", [gone])
    assert (await retention.run_clean_up(database, blobs, KEEP, FAST))["artifacts"] == 1
    assert [await blobs.exists(ref, org_id=org) for ref in refs] == [False, True]


async def test_the_large_payload_of_a_dropped_job_is_removed(
    aged: Conn, database: Database, blobs: BlobStore, org: uuid.UUID
) -> None:
    ref = await blobs.put(org, b"x" * 100_000)
    record(aged, org, payload_ref=str(ref))
    await retention.run_partitions(database, KEEP, FAST)
    assert await blobs.exists(ref, org_id=org)
    assert (await retention.run_clean_up(database, blobs, KEEP, FAST))["blobs"] == 1
    assert not await blobs.exists(ref, org_id=org)


async def test_an_invalid_blob_reference_is_deleted(sql: Conn, database: Database, blobs: BlobStore) -> None:
    sql.execute("insert into duly.released_blobs values (%s)", [f"blob:{uuid.uuid4()}/../../etc"])
    await retention.run_clean_up(database, blobs, KEEP, FAST)
    assert one(sql, "select count(*) from duly.released_blobs") == 0


async def test_many_blobs_are_removed_in_one_run(
    sql: Conn, database: Database, blobs: BlobStore, org: uuid.UUID
) -> None:
    for n in range(120):
        sql.execute("insert into duly.released_blobs values (%s)", [str(await blobs.put(org, bytes([n])))])
    assert (await retention.run_clean_up(database, blobs, KEEP, FAST))["blobs"] == 120


async def test_dead_letters_of_dropped_jobs_are_deleted_and_open_ones_are_audited(
    aged: Conn, database: Database, blobs: BlobStore, org: uuid.UUID
) -> None:
    solved, undecided = ended(aged, org, how="dead"), ended(aged, org, how="dead")
    kept = record(aged, org)
    insert(aged, "ready", org, job_id=kept)
    young = one(aged, "select duly.uuid7()")
    closed = {"resolution": "discarded", "resolved_at": LONG_AGO, "resolved_by": "u1", "resolve_reason": "no"}
    insert(aged, "dead_letters", org, job_id=solved, **closed)
    for job in (undecided, kept, young):
        insert(aged, "dead_letters", org, job_id=job)
    assert (await retention.run_clean_up(database, blobs, KEEP, FAST))["dead_letters"] == 0
    aged.execute("delete from duly.job_records where job_id in (%s, %s)", [solved, undecided])
    assert (await retention.run_clean_up(database, blobs, KEEP, FAST))["dead_letters"] == 2
    assert {job for (job,) in aged.execute("select job_id from duly.dead_letters")} == {kept, young}
    noted = aged.execute("select action, actor_id, target_id from duly.audit_entries").fetchall()
    assert noted == [("dead_letter.expired", "retention", str(undecided))]


# --- as jobs


def test_the_job_types_have_the_category_and_queue_of_maintenance(app: Duly) -> None:
    retention.declare(app, KEEP)
    declared = {job.name: (job.policy.category, job.policy.queue) for job in app.registry}
    names = ("duly.partitions", "duly.expire_ledger", "duly.clean_up")
    assert declared == dict.fromkeys(names, ("maintenance", "q:maintenance"))
    assert {due.job_type for due in MAINTENANCE_SCHEDULES} == set(names)
    assert all(len(due.cron.split()) == 5 for due in MAINTENANCE_SCHEDULES)


async def test_maintenance_jobs_belong_to_the_system_org(app: Duly, sql: Conn) -> None:
    retention.declare(app, KEEP)
    with context(org_id=SYSTEM_ORG, actor=Actor.system("scheduler")):
        for name in ("duly.partitions", "duly.expire_ledger", "duly.clean_up"):
            assert (await app.registry.get(name).enqueue()).created
    assert one(sql, "select name from duly.organizations where org_id = %s", SYSTEM_ORG) == "Duly"
    assert one(sql, "select count(*) from duly.ready where queue = 'q:maintenance'") == 3


@pytest.mark.parametrize(("name", "counted"), [
    ("duly.partitions", {"made", "dropped", "deleted", "answers", "kept", "busy"}),
    ("duly.expire_ledger", {"deleted"}),
    ("duly.clean_up", {"artifacts", "blobs", "dead_letters", "alerts", "notifications", "subscriptions",
                       "secrets", "sessions", "minutes", "workers"}),
])  # fmt: skip
async def test_each_handler_returns_its_counts(app: Duly, name: str, counted: set[str]) -> None:
    retention.declare(app, KEEP)
    handler: Callable[[], Awaitable[dict[str, Any]]] = app.registry.get(name).handler
    counts = await handler()
    assert set(counts) == counted
    assert json.loads(json.dumps(counts)) == counts
    assert set(counts.values()) == {0}


async def test_concurrent_runs_do_no_harm(aged: Conn, database: Database, org: uuid.UUID) -> None:
    fill_ledger(aged, org, 700)
    old = sum(len(partitions(aged, parent)) for parent in EVERY)
    runs = await asyncio.gather(*(retention.run_partitions(database, KEEP, FAST) for _ in range(2)))
    runs += await asyncio.gather(*(retention.run_expire_ledger(database, FAST) for _ in range(2)))
    async with database.engine() as conn:
        left = await retention.run_batch(conn, "delete_expired_ledger")
    assert sum(run["deleted"] for run in runs) + left == 700
    dropped = sum(run.get("dropped", 0) for run in runs)
    assert dropped + sum(len(partitions(aged, parent)) for parent in EVERY) == old
