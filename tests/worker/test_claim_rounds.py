"""A claim round that returns no job has found no claimable one."""

from __future__ import annotations

import uuid
from datetime import timedelta

import psycopg
import pytest

from duly import Duly
from duly.core.policy import parse_stored_policy
from duly.db.database import Database
from duly.features.limits.service import Limits
from duly.worker import claim as claims
from duly.worker.claim import Claimer
from tests.worker.blocking_jobs import WHY, BlockingJobs, create_orgs, create_paused_orgs, enqueue

WORKER = uuid.uuid4()


async def test_a_claim_round_visits_every_org_before_it_returns_no_job(
    app: Duly,
    blocking: BlockingJobs,
    org: uuid.UUID,
    claimer: Claimer,
    database: Database,
    sql: psycopg.Connection,
) -> None:
    await create_paused_orgs(app, blocking, sql, 30)
    await enqueue(blocking.build, org, [1])
    async with database.engine() as conn:
        short = [
            await claims.claim_jobs(
                conn,
                worker_id=WORKER,
                claim_id=uuid.uuid4(),
                lane="q:default",
                slots=1,
                after_org=org,
                max_orgs=10,
            )
        ]
        while short[-1].more and not short[-1].jobs:
            short.append(
                await claims.claim_jobs(
                    conn,
                    worker_id=WORKER,
                    claim_id=uuid.uuid4(),
                    lane="q:default",
                    slots=1,
                    after_org=short[-1].after_org,
                    max_orgs=10,
                )
            )
    assert [len(claim.jobs) for claim in short] == [0, 0, 0, 1]
    assert await claimer.round(WORKER, 5) == []


async def test_a_claim_round_skips_a_lane_whose_orgs_are_all_paused(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer
) -> None:
    """With one slot, in whatever order the lanes take turns."""
    [paused] = await create_orgs(app, 1)
    await Limits(app).pause(paused, **WHY)
    for job in (blocking.build, blocking.ship):
        await enqueue(job, paused, range(3))
    await enqueue(blocking.ship, org, range(10))
    assert [len(await claimer.round(WORKER, 1)) for _ in range(12)] == [1] * 10 + [0, 0]


async def test_a_claim_round_claims_jobs_that_it_moved_to_their_lane(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer
) -> None:
    await enqueue(blocking.build, org, range(5))
    await Limits(app).set(job_type="site.build", max_running=3, **WHY)
    assert [len(await claimer.round(WORKER, 1)) for _ in range(5)] == [1, 1, 1, 0, 0]


async def test_jobs_claimed_before_an_error_are_returned_and_the_next_round_raises_it(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, sql: psycopg.Connection
) -> None:
    await enqueue(blocking.build, org, [1])
    await enqueue(blocking.ship, org, [1])
    sql.execute(
        """create function duly.trouble() returns trigger language plpgsql as
           $$ begin raise exception 'out of order'; end $$"""
    )
    sql.execute(
        """create trigger trouble before delete on duly.ready for each row
           when (old.queue = 'q:exports') execute function duly.trouble()"""
    )
    [job] = await claimer.round(WORKER, 10)
    assert job.job_type == "site.build"
    with pytest.raises(psycopg.Error, match="out of order"):
        await claimer.round(WORKER, 10)
    sql.execute("drop trigger trouble on duly.ready")
    assert [job.job_type for job in await claimer.round(WORKER, 10)] == ["site.ship"]


async def test_a_hinted_job_is_claimed_without_a_peek(
    blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enqueue(blocking.build, org, [1])

    async def forbidden(*_: object) -> None:
        raise AssertionError("it peeked")

    monkeypatch.setattr(claims, "peek_lanes", forbidden)
    claimer.hint("q:default")
    assert len(await claimer.round(WORKER, 5)) == 1


@pytest.mark.parametrize("lane", ["", "q:unknown", "q:default"])
async def test_an_invalid_hint_is_ignored(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, sql: psycopg.Connection, lane: str
) -> None:
    """An empty one, one to an unknown lane, and one to a paused queue."""
    await enqueue(blocking.build, org, [1])
    sql.execute("update duly.queues set paused_at = now() where queue = 'q:default'")
    claimer.hint(lane)
    assert await claimer.round(WORKER, 5) == []
    sql.execute("update duly.queues set paused_at = null")
    assert len(await claimer.round(WORKER, 5)) == 1


async def test_each_job_of_a_claim_has_its_own_policy(
    app: Duly, org: uuid.UUID, database: Database, acting: uuid.UUID
) -> None:
    @app.job("step.short", timeout=timedelta(seconds=10))
    async def short(n: int) -> None: ...

    @app.job("step.long", timeout=timedelta(seconds=20))
    async def long(n: int) -> None: ...

    await app.enqueue_many([(long if n % 3 else short).call(n) for n in range(12)])
    async with database.engine() as conn:
        claim = await claims.claim_jobs(
            conn, worker_id=WORKER, claim_id=uuid.uuid4(), lane="q:default", slots=20, after_org=org
        )
    policies = {(job.job_type, parse_stored_policy(job.policy).timeout) for job in claim.jobs}
    assert policies == {("step.short", timedelta(seconds=10)), ("step.long", timedelta(seconds=20))}
    assert len(claim.jobs) == 12


async def test_a_worker_with_hints_still_peeks_at_all_lanes(
    blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_PEEK_TTL", 0.0)
    peeks = count_peeks(monkeypatch)
    await enqueue(blocking.build, org, range(6))
    for _ in range(6):
        claimer.hint("q:default")
        assert len(await claimer.round(WORKER, 1)) == 1
    assert len(peeks) == 6, "every second round, before its claim and after"


async def test_a_full_claim_is_followed_by_another_without_a_peek(
    blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_PEEK_TTL", 3600.0)
    peeks = count_peeks(monkeypatch)
    await enqueue(blocking.build, org, range(7))
    assert [len(await claimer.round(WORKER, 3)) for _ in range(2)] == [3, 3]
    assert len(peeks) == 1
    assert [len(await claimer.round(WORKER, 3)) for _ in range(2)] == [1, 0]
    assert len(peeks) == 2, "a claim that was not full makes the peek stale"


async def test_a_stale_peek_is_renewed_before_the_jobs_are_returned(
    blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_PEEK_TTL", 0.0)
    peeks = count_peeks(monkeypatch)
    await enqueue(blocking.build, org, range(3))
    assert len(await claimer.round(WORKER, 3)) == 3
    assert len(peeks) == 2


async def test_a_lane_that_fills_up_after_the_peek_gets_its_share(
    blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the lane of the peek always has jobs."""
    monkeypatch.setattr(claims, "_PEEK_TTL", 0.001)
    await enqueue(blocking.build, org, range(60))
    assert len(await claimer.round(WORKER, 4)) == 4
    await enqueue(blocking.ship, org, range(4))
    types = [job.job_type for _ in range(8) for job in await claimer.round(WORKER, 4)]
    assert types.count("site.ship") == 4


async def test_an_error_while_peeking_ahead_loses_no_claimed_job(
    blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_PEEK_TTL", 0.0)
    real, answers = claims.peek_lanes, iter([True, False])

    async def fail_once(*values: object) -> claims.LaneSnapshot:
        if not next(answers, True):
            raise psycopg.errors.InsufficientPrivilege("not now")
        return await real(*values)  # type: ignore[arg-type]

    monkeypatch.setattr(claims, "peek_lanes", fail_once)
    await enqueue(blocking.build, org, range(3))
    assert len(await claimer.round(WORKER, 2)) == 2
    with pytest.raises(psycopg.Error, match="not now"):
        await claimer.round(WORKER, 2)
    assert len(await claimer.round(WORKER, 2)) == 1


def count_peeks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    peeks: list[int] = []
    real = claims.peek_lanes

    async def counted(*values: object) -> claims.LaneSnapshot:
        peeks.append(1)
        return await real(*values)  # type: ignore[arg-type]

    monkeypatch.setattr(claims, "peek_lanes", counted)
    return peeks
