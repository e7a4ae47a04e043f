"""Enqueueing: the stored rows, idempotency keys, batches and refusals."""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, context, errors
from duly.db.database import Database
from duly.jobs import store as job_store
from duly.jobs.enqueue_options import new_ids


def declare(app: Duly):
    @app.job("report.build", category="planning")
    async def build(region: str, year: int = 2026) -> dict[str, int]:
        return {region: year}

    return build


async def test_an_enqueued_job_has_every_field_of_the_contract(app: Duly, acting: uuid.UUID) -> None:
    handle = await declare(app).options(subject_id="doc-7").enqueue("DE", year=2025)
    job = await handle.status()
    assert (job.job_id, job.org_id, job.job_type) == (handle.job_id, acting, "report.build")
    assert (job.status, job.outcome, job.attempt, job.max_attempts) == ("queued", "pending", 0, 3)
    assert (job.queue, job.category, job.subject_id) == ("q:planning", "planning", "doc-7")
    assert (job.actor_type, job.actor_id, job.request_id, job.correlation_id) == (
        "user",
        "u1",
        "req-1",
        "req-1",
    )
    assert job.job_id.version == 7


async def test_enqueue_writes_record_event_ledger_and_queue_row_together(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    handle = await declare(app).enqueue("DE")
    for table in ("job_records", "all_events", "key_ledger", "ready"):
        row = sql.execute(f"select count(*) from duly.{table} where job_id = %s", [handle.job_id]).fetchone()
        assert row == (1,), table
    [event] = [e async for e in _first_events(handle)]
    assert (event.event_seq, event.event_type, event.actor_id) == (1, "job.queued", "u1")


async def _first_events(handle):
    async for event in handle.events():
        yield event
        return


async def test_the_same_payload_is_the_same_job(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app)
    first = await build.enqueue("DE")
    second = await build.enqueue(region="DE")
    other = await build.enqueue("FR")
    assert first.created
    assert not second.created
    assert second.job_id == first.job_id != other.job_id


async def test_the_generated_key_names_type_org_and_project(app: Duly, acting: uuid.UUID) -> None:
    project = uuid.uuid4()
    await app.create_project(acting, project, "Berlin")
    job = await (await declare(app).options(project_id=project).enqueue("DE")).status()
    assert job.idempotency_key == f"report.build:{acting}:{project}:{job.request_payload_hash}"


async def test_timestamps_of_the_same_instant_are_the_same_input(app: Duly, acting: uuid.UUID) -> None:
    @app.job("report.since")
    async def since(at: datetime) -> None: ...

    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    first = await since.enqueue(noon)
    second = await since.enqueue(noon.astimezone(tz=None).replace(tzinfo=None).astimezone())
    shifted = await since.enqueue(datetime.fromisoformat("2026-01-01T14:00:00+02:00"))
    assert first.job_id == second.job_id == shifted.job_id


async def test_an_explicit_idempotency_key_overrides_the_payload(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app)
    first = await build.options(idempotency_key="order-1").enqueue("DE")
    second = await build.options(idempotency_key="order-1").enqueue("FR")
    assert second.job_id == first.job_id


async def test_idempotency_keys_are_separate_per_org(app: Duly, acting: uuid.UUID) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    build = declare(app).options(idempotency_key="order-1")
    mine = await build.enqueue("DE")
    theirs = await declare_again(build).options(idempotency_key="order-1", org_id=other).enqueue("DE")
    assert theirs.created
    assert theirs.job_id != mine.job_id


def declare_again(job):
    return job.app.registry.get(job.name)


async def test_an_expired_key_can_be_reused(app: Duly, acting: uuid.UUID, sql: psycopg.Connection) -> None:
    build = declare(app)
    first = await build.enqueue("DE")
    sql.execute("update duly.key_ledger set expires_at = now() - interval '1 second'")
    second = await build.enqueue("DE")
    assert second.created
    assert second.job_id != first.job_id


async def test_a_batch_keeps_its_order_and_deduplicates_within_itself(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app)
    earlier = await build.enqueue("FR")
    handles = await app.enqueue_many([build.call(region) for region in ("DE", "FR", "DE", "IT")])
    de, fr, again, it = handles
    assert [h.created for h in handles] == [True, False, False, True]
    assert fr.job_id == earlier.job_id
    assert again.job_id == de.job_id != it.job_id


async def test_fifty_clients_with_one_key_get_one_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    declare(app)
    apps = [Duly(settings=app.settings) for _ in range(50)]
    jobs = [declare(each) for each in apps]
    await asyncio.gather(*(each.resources() for each in apps))
    handles = await asyncio.gather(*(job.enqueue("DE") for job in jobs))
    await asyncio.gather(*(each.close() for each in apps))
    assert len({h.job_id for h in handles}) == 1
    assert sum(h.created for h in handles) == 1
    for table in ("job_records", "all_events", "key_ledger", "ready"):
        assert sql.execute(f"select count(*) from duly.{table}").fetchone() == (1,), table


def test_job_ids_are_uuid7s_that_sort_by_creation() -> None:
    ids = [uuid.UUID(job_id) for job_id, _ in new_ids(300)]
    assert ids == sorted(ids)
    assert {(each.version, each.variant) for each in ids} == {(7, uuid.RFC_4122)}
    assert abs((ids[0].int >> 80) / 1000 - time.time()) < 60


async def test_a_batch_of_several_types_priorities_and_keys_is_written_as_specified(
    app: Duly, acting: uuid.UUID
) -> None:
    @app.job("text.count")
    async def count(text: str) -> int:
        return len(text)

    build = declare(app)
    keys = ['a "quoted" \\ key', "{a,b}", "null", " ", "ümlaut ' and more"]
    calls = [
        build.options(idempotency_key=key, priority=number).call("DE") for number, key in enumerate(keys)
    ]
    calls.insert(2, count.call("no key"))
    handles = await app.enqueue_many(calls)
    jobs = [await handle.status() for handle in handles]
    assert [job.job_type for job in jobs].index("text.count") == 2
    del jobs[2]
    assert [(job.idempotency_key, job.priority) for job in jobs] == [(key, n) for n, key in enumerate(keys)]
    again = await app.enqueue_many(calls)
    assert [(handle.job_id, handle.created) for handle in again] == [(h.job_id, False) for h in handles]


async def test_a_duplicate_leaves_no_dead_rows_but_in_the_ledger(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    build = declare(app)
    await build.enqueue("DE")
    pages = "select pg_relation_size('duly.ready'), (select count(*) from duly.ready)"
    before = sql.execute(pages).fetchone()
    await app.enqueue_many([build.call("DE") for _ in range(300)])
    assert sql.execute(pages).fetchone() == before


async def test_a_job_id_from_a_wrong_clock_is_replaced(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = uuid.UUID(int=0x7000_8000_0000_0000_0001)
    ids = old.hex, uuid.uuid4().hex
    monkeypatch.setattr("duly.jobs.enqueue.new_ids", lambda count: iter([ids] * count))
    handle = await declare(app).enqueue("DE")
    assert handle.created
    assert (await handle.status()).job_id == handle.job_id != old
    assert handle.job_id.int >> 80 > 0


async def test_a_large_payload_is_stored_as_a_blob(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("text.count")
    async def count(text: str) -> int:
        return len(text)

    handle = await count.enqueue("ä" * 40_000)
    job = await handle.status()
    assert job.request_payload_ref
    assert job.request_payload_ref.startswith(f"blob:{acting}/")
    assert sql.execute("select payload from duly.job_records").fetchone() == ({},)
    assert not (await count.enqueue("ä" * 40_000)).created


@pytest.mark.parametrize(
    ("missing", "surroundings"),
    [("org_id", {"actor": Actor.user("u1")}), ("actor", {"org_id": uuid.uuid4()})],
)
async def test_a_missing_field_is_named(app: Duly, missing: str, surroundings: dict) -> None:
    with context(**surroundings), pytest.raises(errors.MissingField) as caught:
        await declare(app).enqueue("DE")
    assert caught.value.field == missing
    assert caught.value.fix


async def test_an_unknown_org_is_refused(app: Duly) -> None:
    with context(org_id=uuid.uuid4(), actor=Actor.user("u1")), pytest.raises(errors.UnknownOrg):
        await declare(app).enqueue("DE")


async def test_a_project_of_another_org_is_refused(app: Duly, acting: uuid.UUID) -> None:
    other, project = uuid.uuid4(), uuid.uuid4()
    await app.create_org(other, "Other")
    await app.create_project(other, project, "Theirs")
    build, refusals = declare(app), []
    for theirs in (project, uuid.uuid4()):
        for regions in (["DE"], ["DE", "FR"]):
            with pytest.raises(errors.UnknownProject) as caught:
                await app.enqueue_many([build.options(project_id=theirs).call(region) for region in regions])
            refusals.append((str(caught.value), caught.value.field, caught.value.fix))
    assert len(set(refusals)) == 1, "it is refused like one that does not exist"


async def test_a_batch_of_two_orgs_is_refused(app: Duly, acting: uuid.UUID) -> None:
    build = declare(app)
    with pytest.raises(errors.ContractError, match="one org at a time"):
        await app.enqueue_many([build.call("DE"), build.options(org_id=uuid.uuid4()).call("FR")])


async def test_only_declared_types_may_be_delayed(app: Duly, acting: uuid.UUID) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    with pytest.raises(errors.Unschedulable, match="schedulable=True"):
        await declare(app).options(scheduled_for=tomorrow).enqueue("DE")

    @app.job("mail.send", category="notification")
    def send(to: str) -> None: ...

    handle = await send.options(scheduled_for=tomorrow).enqueue("a@example.com")
    assert (await handle.status()).run_at == tomorrow


async def test_a_delayed_job_waits_in_the_schedule(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("mail.send", category="notification")
    def send(to: str) -> None: ...

    await send.options(scheduled_for=datetime.now(UTC) + timedelta(hours=1)).enqueue("a@example.com")
    await send.options(scheduled_for=datetime.now(UTC) - timedelta(seconds=30)).enqueue("b@example.com")
    assert sql.execute("select count(*) from duly.scheduled").fetchone() == (1,)
    assert sql.execute("select count(*) from duly.ready").fetchone() == (1,)
    with pytest.raises(errors.ContractError, match="in the past"):
        await send.options(scheduled_for=datetime.now(UTC) - timedelta(hours=1)).enqueue("c@example.com")


async def test_nothing_is_written_when_one_job_of_a_batch_is_refused(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    build = declare(app)
    calls = [build.call("DE"), build.options(project_id=uuid.uuid4()).call("FR")]
    with pytest.raises(errors.UnknownProject):
        await app.enqueue_many(calls)
    for table in ("job_records", "all_events", "key_ledger", "ready"):
        assert sql.execute(f"select count(*) from duly.{table}").fetchone() == (0,), table


@pytest.mark.parametrize("size", [10, 50_000])
async def test_key_order_and_spelling_of_timestamps_do_not_change_the_idempotency_key(
    app: Duly, acting: uuid.UUID, size: int
) -> None:
    @app.job("text.count")
    async def count(options: dict[str, Any]) -> None: ...

    text = "x" * size
    first = await count.enqueue({"a": text, "b": "2026-01-01T02:00:00+02:00"})
    second = await count.enqueue({"b": "2026-01-01T00:00:00Z", "a": text})
    other = await count.enqueue({"b": "2026-01-01T00:00:01Z", "a": text})
    assert second.job_id == first.job_id != other.job_id


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00+16:00", "2026-13-45T99:99:99Z", "aT12:30"])
async def test_a_text_that_resembles_a_timestamp_is_accepted(app: Duly, acting: uuid.UUID, text: str) -> None:
    assert (await declare(app).enqueue(text)).created
    assert (await declare_again(app.registry.get("report.build")).enqueue(text + "x")).created


async def test_subject_and_time_are_distinct_parts_of_the_key(app: Duly, acting: uuid.UUID) -> None:
    @app.job("mail.send", category="notification")
    def send(to: str) -> None: ...

    at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    timed = await send.options(scheduled_for=at).enqueue("a")
    subject = await send.options(subject_id=f"{at.timestamp():.6f}").enqueue("a")
    assert subject.created
    assert subject.job_id != timed.job_id


async def test_a_reused_key_drops_the_references_of_its_first_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    await declare(app).enqueue("DE")
    sql.execute(
        "update duly.key_ledger set result_ref = 'r', error_ref = 'e', expires_at = now() - interval '1 s'"
    )
    await declare_again(app.registry.get("report.build")).enqueue("DE")
    assert sql.execute("select result_ref, error_ref from duly.key_ledger").fetchone() == (None, None)


async def test_resending_a_job_returns_the_stored_one(
    app: Duly, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    specs = [declare(app).options(run_identity="nightly").call("DE").spec()]
    answers = []
    for _ in range(2):
        async with database.tenant(acting) as conn:
            answers.append(await job_store.enqueue_jobs(conn, acting, specs))
    job_id = uuid.UUID(specs[0].job_id)
    assert answers == [[(job_id, True)], [(job_id, False)]]
    for table in ("job_records", "event_log", "ready", "active_runs"):
        assert sql.execute(f"select count(*) from duly.{table}").fetchone() == (1,), table


async def test_enqueue_many_of_no_calls_returns_no_handles(app: Duly) -> None:
    assert await app.enqueue_many([]) == []


async def test_a_delayed_job_can_be_resent_after_its_time_has_come(app: Duly, acting: uuid.UUID) -> None:
    @app.job("step.later", schedulable=True)
    async def later(n: int) -> None: ...

    now = datetime.now(UTC)
    first = await later.options(idempotency_key="k", scheduled_for=now + timedelta(hours=1)).enqueue(1)
    again = await later.options(idempotency_key="k", scheduled_for=now - timedelta(hours=1)).enqueue(1)
    assert (again.job_id, again.created) == (first.job_id, False)
    with pytest.raises(errors.ContractError, match="scheduled_for: lies in the past"):
        await later.options(idempotency_key="new", scheduled_for=now - timedelta(hours=1)).enqueue(1)
