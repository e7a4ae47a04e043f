"""Create, weigh, pause and count queues; list workers."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, context, errors
from duly.core.job import SYSTEM_ORG
from duly.core.policy import QUEUES
from duly.features.limits.service import Limits
from duly.features.queues import service as queues_service
from duly.features.queues.models import QueueStats
from duly.features.queues.service import Queues
from tests.db.tenancy import insert
from tests.worker.blocking_jobs import (
    WHY,
    BlockingJobs,
    create_orgs,
    enqueue,
    running_workers,
    wait_until_idle,
)

ANNA = Actor.operator("anna")
SOON = timedelta(milliseconds=20)


@pytest.fixture
def queues(app: Duly) -> Queues:
    return Queues(app)


def audited(sql: psycopg.Connection) -> list[tuple[Any, ...]]:
    query = """select org_id, action, actor_type || ':' || actor_id, reason, target_type, target_id, detail
               from duly.audit_entries order by entry_id"""
    return sql.execute(query).fetchall()


async def stats(queues: Queues, queue: str) -> QueueStats:
    [found] = [s for s in await queues.stats() if s.queue == queue]
    return found


async def test_queues_are_listed_by_weight(queues: Queues) -> None:
    found = await queues.stats()
    assert {s.queue for s in found} == set(QUEUES)
    assert [s.weight for s in found] == sorted((s.weight for s in found), reverse=True)
    for queue in found:
        assert (str(queue.waiting), str(queue.scheduled), str(queue.running)) == ("0", "0", "0")
        assert (queue.paused_at, queue.oldest_waiting_at, queue.oldest_waiting_age) == (None, None, None)


async def test_each_change_is_audited_in_the_systems_trail_and_a_change_of_nothing_is_not(
    queues: Queues, sql: psycopg.Connection
) -> None:
    for _ in range(2):
        await queues.create("q:video", 3, actor=ANNA, reason="new product")
        await queues.set_weight("q:video", 5, actor=ANNA, reason="it sells")
        await queues.set_weight("q:video", 3, actor=ANNA, reason="it does not")
    for _ in range(2):
        paused = await queues.pause("q:video", actor=ANNA, reason="codec trouble")
    for _ in range(2):
        resumed = await queues.resume("q:video", actor=ANNA, reason="patched")
    assert (paused.paused_by, paused.pause_reason) == ("operator:anna", "codec trouble")
    assert (resumed.paused_at, resumed.paused_by, resumed.pause_reason) == (None, None, None)
    who, what = "operator:anna", ("queue", "q:video")
    heavier = (SYSTEM_ORG, "queue.weighed", who, "it sells", *what, {"weight": 5, "before": 3})
    lighter = (SYSTEM_ORG, "queue.weighed", who, "it does not", *what, {"weight": 3, "before": 5})
    assert audited(sql) == [
        (SYSTEM_ORG, "queue.created", who, "new product", *what, {"weight": 3}),
        heavier,
        lighter,
        heavier,
        lighter,
        (SYSTEM_ORG, "queue.paused", who, "codec trouble", *what, {}),
        (SYSTEM_ORG, "queue.resumed", who, "patched", *what, {}),
    ]


async def test_alert_thresholds_are_set_one_by_one_and_audited(
    queues: Queues, sql: psycopg.Connection
) -> None:
    for _ in range(2):
        await queues.set_alerts("q:exports", depth=500, actor=ANNA, reason="nightly")
    both = await queues.set_alerts("q:exports", wait=timedelta(hours=1), actor=ANNA, reason="slow")
    assert (both.alert_depth, both.alert_wait, both.weight) == (500, timedelta(hours=1), 2)
    await queues.pause("q:exports", actor=ANNA, reason="disk full")
    back = await queues.set_alerts("q:exports", depth=None, actor=ANNA, reason="as before")
    assert (back.alert_depth, back.alert_wait, back.pause_reason) == (None, timedelta(hours=1), "disk full")
    details = [(action, detail) for _, action, *_, detail in audited(sql)]
    nothing = {"alert_depth": None, "alert_wait": None}
    assert details == [
        ("queue.alerts_set", {**nothing, "alert_depth": 500, "before": nothing}),
        ("queue.alerts_set", {
            "alert_depth": 500, "alert_wait": 3600.0, "before": {**nothing, "alert_depth": 500}
        }),
        ("queue.paused", {}),
        ("queue.alerts_set", {
            **nothing, "alert_wait": 3600.0, "before": {"alert_depth": 500, "alert_wait": 3600.0}
        }),
    ]  # fmt: skip


async def test_a_second_pause_keeps_actor_and_reason_of_the_first(queues: Queues) -> None:
    first = await queues.pause("q:exports", actor=ANNA, reason="disk full")
    second = await queues.pause("q:exports", actor=Actor.operator("bob"), reason="me too")
    assert second == first


async def test_a_queue_of_that_name_with_another_weight_is_a_conflict(queues: Queues) -> None:
    with pytest.raises(errors.Conflict, match="with weight 4"):
        await queues.create("q:default", 3, actor=ANNA, reason="mine")


@pytest.mark.parametrize(
    ("call", "field", "kind"),
    [
        (lambda q: q.pause("q:nowhere", actor=ANNA, reason="r"), "queue", errors.UnknownQueue),
        (lambda q: q.set_weight("q:nowhere", 2, actor=ANNA, reason="r"), "queue", errors.UnknownQueue),
        (lambda q: q.pause("default", actor=ANNA, reason="r"), "queue", errors.ContractError),
        (lambda q: q.pause("q:default#x", actor=ANNA, reason="r"), "queue", errors.ContractError),
        (lambda q: q.pause(None, actor=ANNA, reason="r"), "queue", errors.ContractError),
        (lambda q: q.pause("q:deadletter", actor=ANNA, reason="r"), "queue", errors.ContractError),
        (lambda q: q.create("q:Loud", actor=ANNA, reason="r"), "queue", errors.ContractError),
        (lambda q: q.create("q:loud", 0, actor=ANNA, reason="r"), "weight", errors.ContractError),
        (lambda q: q.set_weight("q:default", True, actor=ANNA, reason="r"), "weight", errors.ContractError),
        (lambda q: q.set_weight("q:default", 2.5, actor=ANNA, reason="r"), "weight", errors.ContractError),
        (
            lambda q: q.set_alerts("q:default", depth=0, actor=ANNA, reason="r"),
            "alert_depth",
            errors.ContractError,
        ),
        (
            lambda q: q.set_alerts("q:default", wait=SOON, actor=ANNA, reason="r"),
            "alert_wait",
            errors.ContractError,
        ),
        (lambda q: q.resume("q:default", actor=None, reason="r"), "actor", errors.MissingField),
        (lambda q: q.resume("q:default", actor=ANNA, reason=None), "reason", errors.MissingField),
        (lambda q: q.resume("q:default", actor=ANNA, reason=""), "reason", errors.ContractError),
    ],
)
async def test_an_invalid_argument_is_named_with_a_fix(
    queues: Queues, sql: psycopg.Connection, call: Any, field: str, kind: type[errors.DulyError]
) -> None:
    with pytest.raises(kind) as caught:
        await call(queues)
    assert (caught.value.field, bool(caught.value.fix)) == (field, True)
    assert audited(sql) == []


async def test_queued_scheduled_and_running_jobs_are_counted(
    app: Duly, queues: Queues, sql: psycopg.Connection
) -> None:
    blocking, (one, two) = BlockingJobs(app), await create_orgs(app, 2)

    @app.job("site.remind", category="notification")
    async def remind() -> None: ...

    await Limits(app).set(job_type="site.dig", max_running=1, **WHY)
    await Limits(app).pause(two, **WHY)
    for org in (one, two):
        for job in (blocking.build, blocking.dig, blocking.ship):
            await enqueue(job, org, range(3))
        with context(org_id=org, actor=ANNA):
            tomorrow = datetime.now(UTC) + timedelta(days=1)
            await app.enqueue_many([remind.options(scheduled_for=tomorrow).call()])
    async with running_workers(app, poll=SOON) as [worker]:
        await blocking.wait_until_started(7)
        await wait_until_idle(worker)
        default, exports = await stats(queues, "q:default"), await stats(queues, "q:exports")
        assert (str(default.waiting), str(default.running)) == ("8", "4")
        assert (str(exports.waiting), str(exports.running)) == ("3", "3")
        assert str((await stats(queues, "q:notifications")).scheduled) == "2"
        blocking.release.set()


async def test_the_oldest_queued_job_is_found_among_all_orgs_and_priorities(
    app: Duly, queues: Queues, sql: psycopg.Connection
) -> None:
    blocking = BlockingJobs(app)
    for n, org in enumerate(await create_orgs(app, 5)):
        await enqueue(blocking.build, org, range(3))
        await enqueue(blocking.build, org, range(3, 6), priority=n)
    [(job_id,)] = sql.execute(
        "select job_id from duly.ready where rank = -3 order by job_id limit 1"
    ).fetchall()
    sql.execute("update duly.job_records set run_at = run_at - interval '1 hour' where job_id = %s", [job_id])
    found = await stats(queues, "q:default")
    assert found.oldest_waiting_age is not None
    assert timedelta(hours=1) < found.oldest_waiting_age < timedelta(hours=1, minutes=2)
    assert str(found.waiting) == "30"


async def test_counts_stop_at_the_maximum(
    app: Duly, queues: Queues, org: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues_service, "MAX_COUNT", 10)
    blocking, [rich] = BlockingJobs(app), await create_orgs(app, 1)
    await enqueue(blocking.build, org, range(8))
    await enqueue(blocking.build, rich, range(8))
    await enqueue(blocking.ship, rich, range(10))
    for n in range(12):
        insert(sql, "dead_letters", org, job_id=uuid.UUID(int=n))
    sql.execute(
        """insert into duly.scheduled (run_at, org_id, job_id, queue, rank)
           select now() + interval '1 day', %s, gen_random_uuid(), 'q:planning', 0
           from generate_series(1, 20)""",
        [org],
    )
    counts = {s.queue: (str(s.waiting), str(s.scheduled)) for s in await queues.stats()}
    assert counts["q:default"] == ("10+", "0+")
    assert counts["q:exports"] == ("10", "0+")
    assert counts["q:planning"] == ("0", "10+")
    assert counts["q:deadletter"] == ("10+", "0+")


async def test_open_dead_letters_are_counted_as_queued_in_their_queue(
    queues: Queues, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    insert(sql, "dead_letters", org)
    assert str((await stats(queues, "q:deadletter")).waiting) == "1"


async def test_workers_are_listed_with_their_jobs_and_their_state(
    app: Duly, queues: Queues, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    blocking = BlockingJobs(app)
    await enqueue(blocking.build, org, range(4))
    async with running_workers(app, 1, slots=3, name="w1", queues=("q:default",)) as [worker]:
        await blocking.wait_until_started(3)
        [listed] = await queues.workers()
        assert (listed.worker_id, listed.name, listed.slots) == (worker.worker_id, "w1", 3)
        assert (listed.running, listed.queues, listed.state) == (3, ["q:default"], "working")
        sql.execute("update duly.workers set heartbeat_at = heartbeat_at - interval '1 hour'")
        assert (await queues.workers())[0].state == "silent"
        stopping = asyncio.create_task(worker.stop())
        await until_state(queues, worker, "draining")
        blocking.release.set()
        await stopping
        assert await queues.workers() == []
    insert_lost(sql)
    assert [w.state for w in await queues.workers()] == ["lost"]


async def until_state(queues: Queues, worker: Any, state: str) -> None:
    while [w.state for w in await queues.workers()] != [state]:
        worker._heartbeat.nudge()


def insert_lost(sql: psycopg.Connection) -> None:
    sql.execute(
        """insert into duly.workers
           (worker_id, name, host, pid, version, layout, queues, slots, lease, lost_at)
           values (gen_random_uuid(), 'w2', 'h', 1, '1', 4, '{q:default}', 1, interval '30 s', now())"""
    )
