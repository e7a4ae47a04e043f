"""A letter is replayed once, as a new job, however often and by however many actors."""

from __future__ import annotations

import asyncio
import uuid
from contextvars import Context
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, context, errors
from duly.core.outcome import Completed, Retried
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from tests.db.stale_jobs import fail_waiting
from tests.features.dead_letters.dead_jobs import (
    ACTIONS,
    BOOM,
    OPS,
    WHY,
    Bury,
    audited,
    dump_resolution_rows,
    end_one,
    history,
)


async def test_a_replay_is_a_new_job_with_the_attributes_of_the_dead_one(
    app: Duly, dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    project = uuid.uuid4()
    await app.create_project(acting, project, "Berlin")
    old = await bury("bob", subject_id="mail/7", project_id=project, priority=7, metadata={"a": 1})
    before = sql.execute("select * from duly.jobs where job_id = %s", [old]).fetchone()
    with context(request_id="req-ops", traceparent=f"00-{'a' * 32}-{'b' * 16}-01"):
        handle = await dead_letters.replay(acting, old, OPS, WHY)
    assert handle.created
    assert handle.job_id != old
    new = await handle.status()
    assert (new.status, new.outcome, new.attempt, new.replay_of) == ("queued", "pending", 0, old)
    assert (new.subject_id, new.project_id, new.correlation_id) == ("mail/7", project, "req-1")
    assert (new.actor_type, new.actor_id, new.request_id) == ("user", "ops-1", "req-ops")
    assert new.idempotency_key == f"replay:{old}:1"
    same = (
        "job_type, category, queue, priority, max_attempts, payload, request_payload_hash, policy, metadata"
    )
    rows = sql.execute(f"select {same} from duly.jobs").fetchall()
    assert rows[0] == rows[1]
    assert rows[0][3] == 7
    ids = sql.execute("select count(distinct result_id), max(traceparent) from duly.job_records").fetchone()
    assert ids == (2, f"00-{'a' * 32}-{'b' * 16}-01")
    assert sql.execute("select * from duly.jobs where job_id = %s", [old]).fetchone() == before


async def test_the_events_of_a_replay_start_with_its_origin(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    new = (await dead_letters.replay(acting, old, OPS, WHY)).job_id
    assert history(sql, new) == ["job.queued", "job.replayed"]
    row = sql.execute(
        "select payload_json, actor_id, status from duly.job_events where event_type = 'job.replayed'"
    ).fetchone()
    assert row == ({"replay_of": str(old), "by": "user:ops-1", "reason": WHY}, "ops-1", "queued")


async def test_a_replay_is_audited_and_resolves_the_letter(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    with context(request_id="req-ops"):
        new = (await dead_letters.replay(acting, old, OPS, WHY)).job_id
    assert audited(sql) == [
        ("dead_letter.replayed", "ops-1", "job", str(old), WHY, "req-ops", "req-1", str(new))
    ]
    letter = await dead_letters.get(acting, old)
    assert (letter.resolution, letter.successor_job_id) == ("replayed", new)


async def test_a_replay_outside_of_any_request_has_a_request_id_of_its_own(
    app: Duly, dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    handle = await asyncio.get_running_loop().create_task(
        dead_letters.replay(acting, old, OPS, WHY), context=Context()
    )
    request_id = (await handle.status()).request_id
    assert request_id.startswith("req-")
    assert audited(sql)[0][5] == request_id != "req-1"


async def test_a_second_replay_returns_the_job_of_the_first(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    first = await dead_letters.replay(acting, old, OPS, WHY)
    before = dump_resolution_rows(sql)
    second = await dead_letters.replay(acting, old, Actor.user("ops-2"), "me too")
    assert (second.job_id, second.created) == (first.job_id, False)
    assert dump_resolution_rows(sql) == before


async def test_concurrent_replays_create_one_job(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    handles = await asyncio.gather(*(dead_letters.replay(acting, old, OPS, WHY) for _ in range(20)))
    assert len({handle.job_id for handle in handles}) == 1
    assert sum(handle.created for handle in handles) == 1
    assert len(audited(sql)) == 1
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (2,)


async def test_of_a_concurrent_replay_and_discard_one_wins_and_the_other_raises(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    for round_ in range(10):
        old = await bury(str(round_))
        before = len(audited(sql))
        pair = [dead_letters.replay(acting, old, OPS, WHY), dead_letters.discard(acting, old, OPS, WHY)]
        ordered = pair if round_ % 2 else pair[::-1]
        answers = await asyncio.gather(*ordered, return_exceptions=True)
        [refused] = [a for a in answers if isinstance(a, Exception)]
        assert isinstance(refused, errors.AlreadyResolved)
        letter = await dead_letters.get(acting, old)
        successors = sql.execute("select job_id from duly.job_records where replay_of = %s", [old]).fetchall()
        assert [row[0] for row in successors] == [x for x in [letter.successor_job_id] if x]
        assert (letter.resolution == "replayed") == bool(successors)
        assert len(audited(sql)) == before + 1
        for (job,) in successors:  # out of the way of the next round
            sql.execute("delete from duly.ready where job_id = %s", [job])


@pytest.mark.parametrize("first", ACTIONS)
@pytest.mark.parametrize("second", ACTIONS)
async def test_a_resolved_letter_is_not_resolved_differently(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection, first: str, second: str
) -> None:
    old = await bury()
    await ACTIONS[first](dead_letters, acting, old)
    before = dump_resolution_rows(sql)
    if first == second and first != "fixed":
        await ACTIONS[second](dead_letters, acting, old)
    else:
        with pytest.raises(errors.AlreadyResolved) as refused:
            await ACTIONS[second](dead_letters, acting, old)
        assert f"{old} was {first} by user:ops-1" in str(refused.value)
        successor = (await dead_letters.get(acting, old)).successor_job_id
        assert (successor is None) == (first == "discarded")
        assert successor is None or str(successor) in str(refused.value)
    assert dump_resolution_rows(sql) == before


async def test_a_replayed_job_is_claimed_and_finished_like_any_other(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    handle = await dead_letters.replay(acting, await bury(), OPS, WHY)
    assert await end_one(database, Completed(3)) == handle.job_id
    assert await handle.result(timeout=0) == 3
    assert history(sql, handle.job_id) == ["job.queued", "job.replayed", "job.started", "job.completed"]
    assert (await handle.status()).attempt == 1


async def test_a_replayed_job_is_retried_like_any_other(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    handle = await dead_letters.replay(acting, await bury(), OPS, WHY)
    await end_one(database, Retried(BOOM), attempts=2)
    await end_one(database, Completed(3))
    assert history(sql, handle.job_id)[2:] == ["job.started", "job.retried", "job.started", "job.completed"]


async def test_a_replayed_job_can_be_canceled_while_it_waits(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    handle = await dead_letters.replay(acting, await bury(), OPS, WHY)
    assert await handle.cancel("not now") == "canceled"
    assert history(sql, handle.job_id) == ["job.queued", "job.replayed", "job.canceled"]
    assert sql.execute("select count(*) from duly.ready").fetchone() == (0,)


async def test_a_replayed_job_that_is_never_claimed_can_be_failed(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    handle = await dead_letters.replay(acting, await bury(), OPS, WHY)
    async with database.engine() as conn:
        assert await fail_waiting(conn, acting, handle.job_id)
    assert history(sql, handle.job_id) == ["job.queued", "job.replayed", "job.reconciled", "job.failed"]


async def test_a_replay_that_dies_again_has_a_letter_of_its_own(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    chain = [await bury()]
    for _ in range(3):
        handle = await dead_letters.replay(acting, chain[-1], OPS, WHY)
        assert await end_one(database, Retried(BOOM)) == handle.job_id
        chain.append(handle.job_id)
    [still_open] = (await dead_letters.list(acting)).letters
    assert still_open.job_id == chain[-1]
    for old, new in pairwise(chain):
        assert (await dead_letters.get(acting, old)).successor_job_id == new
        assert (await dead_letters.get(acting, new)).replay_of == old
    assert history(sql, chain[-1])[-3:] == ["job.started", "job.deadlettered", "job.failed"]


async def test_a_large_payload_is_replayed_by_its_reference(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury("ä" * 40_000)
    new = (await dead_letters.replay(acting, old, OPS, WHY)).job_id
    rows = sql.execute("select payload, payload_ref, payload_hash from duly.job_records").fetchall()
    assert rows[0] == rows[1]
    assert rows[0][1].startswith(f"blob:{acting}/")
    assert (await dead_letters.get(acting, old)).payload_ref == rows[0][1]
    assert new != old


async def test_a_foreign_key_of_the_same_name_does_not_pass_for_a_replay(
    dead_letters: DeadLetters, bury: Bury, send: Any, acting: uuid.UUID
) -> None:
    old = await bury()
    taken = await send.options(idempotency_key=f"replay:{old}:1").enqueue("another")
    handle = await dead_letters.replay(acting, old, OPS, WHY)
    assert handle.created
    assert handle.job_id != taken.job_id
    assert (await handle.status()).idempotency_key == f"replay:{old}:2"


async def test_a_replay_that_the_orgs_quota_refuses_leaves_the_letter_open(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    sql.execute("insert into duly.gates (org_id, job_type, max_waiting) values (%s, '', 0)", [acting])
    before = dump_resolution_rows(sql)
    with pytest.raises(errors.LimitExceeded):
        await dead_letters.replay(acting, old, OPS, WHY)
    assert dump_resolution_rows(sql) == before
