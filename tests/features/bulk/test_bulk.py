"""Bulk actions: preview, cancel, replay and discard many jobs, with audit."""

from __future__ import annotations

import uuid
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from duly import Actor, Cancel, Duly, Snooze, Status, errors
from duly.core.job import SYSTEM_ORG
from duly.features.bulk import job
from duly.features.bulk.service import Bulk
from duly.features.dead_letters.service import DeadLetters
from duly.features.jobs.service import Jobs
from duly.features.pagination import Count
from tests.features.bulk.conftest import End
from tests.worker.blocking_jobs import create_orgs

OPS = Actor.user("ops-1")
WHY: dict[str, Any] = {"actor": OPS, "reason": "the provider is back"}


def exactly(n: int) -> Count:
    return Count(count=n, at_least=False)


async def statuses(app: Duly, org: uuid.UUID, **job_filter: Any) -> dict[uuid.UUID, Status]:
    page = await Jobs(app).list(org, limit=500, **job_filter)
    return {one.job_id: one.status for one in page.jobs if one.job_type != "duly.bulk"}


def trail(sql: psycopg.Connection, org: uuid.UUID) -> list[tuple[str, str, str]]:
    query = "select action, actor_id, reason from duly.audit_entries where org_id = %s order by 1"
    return [(str(a), str(b), str(c)) for a, b, c in sql.execute(query, [org]).fetchall()]


async def test_all_matching_jobs_are_canceled_in_batches_and_no_others(
    app: Duly, bulk: Bulk, mail: Any, acting: uuid.UUID, sql: psycopg.Connection, maintained: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    [theirs] = await create_orgs(app, 1)
    calls = [mail.call(str(n), "DE" if n % 2 else "FR") for n in range(20)]
    await app.enqueue_many(calls)
    await app.enqueue_many([mail.options(org_id=theirs).call("x") for _ in range(5)])
    monkeypatch.setattr(job, "_BATCH_SIZE", 3)
    job_filter: Any = {"payload": {"region": "DE"}, "job_type": "mail.*"}
    impact = await bulk.impact(acting, "cancel", job_filter, actor=OPS)
    assert (impact.jobs, impact.by_status, impact.left) == (exactly(10), {Status.QUEUED: exactly(10)}, {})
    handle = await bulk.start(acting, "cancel", job_filter, **WHY)
    assert (await bulk.start(acting, "cancel", job_filter, **WHY)).job_id == handle.job_id
    async with maintained():
        assert (await handle.wait(30)).status is Status.COMPLETED
    assert await handle.result() == {"verb": "cancel", "done": 10, "left": {}}
    ended = await statuses(app, acting, payload={"region": "DE"})
    assert set(ended.values()) == {Status.CANCELED}
    assert set((await statuses(app, acting, payload={"region": "FR"})).values()) == {Status.QUEUED}
    assert set((await statuses(app, theirs)).values()) == {Status.QUEUED}
    entries = trail(sql, acting)
    assert {(who, why) for _, who, why in entries} == {("ops-1", WHY["reason"])}
    actions = ["job.bulk_ended", "job.bulk_requested", *["job.cancel_requested"] * 10]
    assert [action for action, *_ in entries] == actions
    snapshot = await Jobs(app).show(acting, handle.job_id)
    assert snapshot.job.summary_counts == {"total": 10, "succeeded": 10, "skipped": 0}
    assert sum(event.event_type == "job.progressed" for event in snapshot.events) == 5
    again = await bulk.impact(acting, "cancel", job_filter, actor=OPS)
    assert (again.jobs, again.left) == (exactly(0), {Status.CANCELED: exactly(10)})


async def test_ended_jobs_are_replayed_once_and_their_replays_never(
    app: Duly, bulk: Bulk, end: End, acting: uuid.UUID, sql: psycopg.Connection, maintained: Any
) -> None:
    ended = [await end(how) for how in ("dead", "dead", "failed", "completed")]
    discarded = await end("dead")
    await DeadLetters(app).discard(acting, discarded, OPS, "not this one")
    impact = await bulk.impact(acting, "replay", {}, actor=OPS)
    assert impact.by_status == {Status.COMPLETED: exactly(1), Status.FAILED: exactly(4)}
    reports = []
    for reason in ("first", "second"):
        handle = await bulk.start(acting, "replay", {}, actor=OPS, reason=reason)
        async with maintained():
            await handle.wait(30)
        reports.append(await handle.result())
    assert reports == [
        {"verb": "replay", "done": 4, "left": {"resolved already": 1}},
        {"verb": "replay", "done": 0, "left": {"replayed already": 2, "resolved already": 3}},
    ]
    found = sql.execute("select replay_of from duly.job_records where replay_of is not null").fetchall()
    assert sorted(row[0] for row in found) == sorted(ended)
    actions = [action for action, *_ in trail(sql, acting)]
    assert (actions.count("dead_letter.replayed"), actions.count("job.rerun")) == (2, 2)
    assert (await bulk.impact(acting, "cancel", {"status": "queued"}, actor=OPS)).jobs == exactly(4)


async def test_replays_become_due_at_the_given_rate(
    app: Duly, bulk: Bulk, end: End, acting: uuid.UUID, sql: psycopg.Connection, maintained: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for _ in range(5):
        await end("failed")
    monkeypatch.setattr(job, "_BATCH_SIZE", 2)
    handle = await bulk.start(acting, "replay", {"error_code": "refused"}, **WHY, per_second=0.01)
    async with maintained():
        await handle.wait(30)
    due = [row[0] for row in sql.execute("select run_at from duly.scheduled order by run_at").fetchall()]
    assert len(due) == 4  # the first may run at once
    assert all(90 < (b - a).total_seconds() < 110 for a, b in pairwise(due))
    for wrong in ("cancel", "discard"):
        with pytest.raises(errors.ContractError, match="only replays have a rate, not"):
            await bulk.start(acting, wrong, {}, **WHY, per_second=1.0)


async def test_only_open_dead_letters_are_discarded(
    app: Duly, bulk: Bulk, end: End, acting: uuid.UUID, maintained: Any
) -> None:
    dead = [await end(how) for how in ("dead", "failed", "dead")]
    [group] = await DeadLetters(app).groups(acting)
    job_filter: Any = {"fingerprint": group.fingerprint}
    impact = await bulk.impact(acting, "discard", job_filter, actor=OPS)
    assert impact.by_status == {Status.FAILED: exactly(2)}
    assert (await bulk.impact(acting, "discard", {"outcome": "failed"}, actor=OPS)).jobs == exactly(0)
    handle = await bulk.start(acting, "discard", {"job_ids": dead}, **WHY)
    async with maintained():
        await handle.wait(30)
    assert await handle.result() == {"verb": "discard", "done": 2, "left": {}}
    assert await DeadLetters(app).groups(acting) == []


async def test_a_retry_continues_after_the_last_committed_batch(
    app: Duly, bulk: Bulk, mail: Any, acting: uuid.UUID, maintained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.enqueue_many([mail.call(str(n)) for n in range(9)])
    monkeypatch.setattr(job, "_BATCH_SIZE", 2)
    real, batches = job.change_jobs, [0]

    async def act(*arguments: Any, **more: Any) -> Any:
        batches[0] += 1
        tally = await real(*arguments, **more)
        if batches[0] == 3:
            raise Snooze(0)  # after its work and before its commit, as if the process had died here
        return tally

    monkeypatch.setattr(job, "change_jobs", act)
    handle = await bulk.start(acting, "cancel", {"job_type": "mail.send"}, **WHY)
    async with maintained():
        await handle.wait(30)
    assert await handle.result() == {"verb": "cancel", "done": 9, "left": {}}
    assert batches[0] == 6


async def test_an_attempt_without_its_lease_changes_nothing(
    app: Duly, bulk: Bulk, mail: Any, acting: uuid.UUID, maintained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.enqueue_many([mail.call(str(n)) for n in range(3)])
    tries = [0]

    async def keep_progress(*_: Any) -> set[Any]:
        tries[0] += 1
        return set()

    monkeypatch.setattr(job.settle_store, "write_progress", keep_progress)
    await bulk.start(acting, "cancel", {"job_type": "mail.send"}, **WHY)
    async with maintained() as [worker]:
        await worker.loop_events.wait("idle", worker.loop_events.counts["idle"] + 2)
    assert tries[0]
    assert set((await statuses(app, acting)).values()) == {Status.QUEUED}


async def test_a_canceled_bulk_action_stops_and_is_audited(
    app: Duly, bulk: Bulk, mail: Any, acting: uuid.UUID, sql: psycopg.Connection, maintained: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    await app.enqueue_many([mail.call(str(n)) for n in range(4)])
    waiting = await bulk.start(acting, "cancel", {"job_type": "mail.send"}, **WHY)
    assert await Jobs(app).cancel(acting, waiting.job_id, actor=OPS, reason="no") is Status.CANCELED
    monkeypatch.setattr(job, "_BATCH_SIZE", 1)
    real, batches = job.find_jobs, iter(range(4))

    async def find_until_canceled(*arguments: Any) -> Any:
        if next(batches) == 3:
            raise Cancel("enough")  # as if the cancel had been received before this batch
        return await real(*arguments)

    monkeypatch.setattr(job, "find_jobs", find_until_canceled)
    handle = await bulk.start(acting, "cancel", {"job_type": "mail.*"}, **WHY)
    async with maintained():
        assert (await handle.wait(30)).status is Status.CANCELED
    left = [status for status in (await statuses(app, acting)).values() if status is Status.QUEUED]
    assert len(left) == 1
    query = "select detail from duly.audit_entries where action = 'job.bulk_ended'"
    [[detail]] = sql.execute(query).fetchall()
    assert (detail["done"], detail["stopped"], detail["wanted"]) == (3, True, {"job_type": "mail.*"})


async def test_only_operators_change_system_jobs_and_jobs_of_other_orgs(
    app: Duly, bulk: Bulk, mail: Any, acting: uuid.UUID, maintained: Any
) -> None:
    [theirs] = await create_orgs(app, 1)
    await app.enqueue_many([mail.call("a")])
    await app.enqueue_many([mail.options(org_id=theirs).call("b")])
    await bulk.start(acting, "discard", {}, **WHY)
    anna = Actor.operator("anna")
    assert (await bulk.impact(acting, "cancel", {}, actor=OPS)).jobs == exactly(1)
    assert (await bulk.impact(acting, "cancel", {}, actor=anna)).jobs == exactly(2)
    assert (await bulk.impact(None, "cancel", {"job_type": "mail.send"}, actor=anna)).jobs == exactly(2)
    handle = await bulk.start(None, "cancel", {"job_type": "mail.send"}, actor=anna, reason="over")
    assert handle.org_id == SYSTEM_ORG
    async with maintained():
        await handle.wait(30)
    assert (await handle.result())["done"] == 2
    for org in (acting, theirs):
        assert set((await statuses(app, org)).values()) == {Status.CANCELED}


@pytest.mark.parametrize(
    ("verb", "job_filter", "field"),
    [
        ("destroy", {}, "verb"),
        ("cancel", {"status": "lost"}, "status"),
        ("cancel", {"payload": {"password": "x"}}, "payload.password"),
    ],
)
async def test_invalid_arguments_are_refused(
    bulk: Bulk, acting: uuid.UUID, verb: str, job_filter: Any, field: str
) -> None:
    for request in (
        bulk.impact(acting, verb, job_filter, actor=OPS),
        bulk.start(acting, verb, job_filter, **WHY),
    ):
        with pytest.raises(errors.ContractError) as caught:
            await request
        assert caught.value.field == field
    with pytest.raises(errors.UnknownOrg):
        await bulk.start(uuid.uuid4(), "cancel", {}, **WHY)
