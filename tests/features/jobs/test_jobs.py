"""List, show, submit and cancel jobs."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, Fail, Handle, RetryPolicy, context, errors
from duly.core.job import JobSnapshot
from duly.db.statements import statement
from duly.features.jobs import listing
from duly.features.jobs.service import Jobs
from duly.features.limits.service import Limits
from duly.features.queues.service import Queues
from tests.worker.blocking_jobs import (
    NEVER,
    SOON,
    WHY,
    BlockingJobs,
    assert_completed,
    create_orgs,
    enqueue,
    running_workers,
    wait_until_idle,
)

ANNA = Actor.operator("anna")
HOUR = timedelta(hours=1)


async def walk(jobs: Jobs, org: uuid.UUID, size: int = 3, **filters: Any) -> list[JobSnapshot]:
    """Return the jobs of all pages of a list."""
    found: list[JobSnapshot] = []
    after, first = None, True
    while first or after is not None:
        page = await jobs.list(org, limit=size, after=after, **filters)
        assert len(page.jobs) <= size
        found, after, first = [*found, *page.jobs], page.after, False
    return found


def ids(found: list[Any]) -> list[uuid.UUID]:
    return [job.job_id for job in found]


def newest_first(handles: list[Handle[Any]]) -> list[uuid.UUID]:
    return sorted(ids(handles), reverse=True)


async def test_the_jobs_of_an_org_are_listed_newest_first_each_once(
    app: Duly, jobs: Jobs, blocking: BlockingJobs
) -> None:
    mine, theirs = await create_orgs(app, 2)
    handles = [*await enqueue(blocking.build, mine, range(4)), *await enqueue(blocking.ship, mine, range(4))]
    await enqueue(blocking.build, theirs, range(4))
    assert ids(await walk(jobs, mine)) == newest_first(handles)
    assert len((await jobs.list(str(mine), limit=8)).jobs) == 8
    assert (await jobs.list(mine, limit=8)).after is None


async def test_an_org_without_jobs_has_an_empty_list_and_an_unknown_org_is_refused(
    jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID
) -> None:
    for filters in ({}, {"status": "queued"}, {"status": "failed"}, {"job_type": "site.dig"}):
        assert await walk(jobs, org, **filters) == []
        with pytest.raises(errors.UnknownOrg) as caught:
            await jobs.list(uuid.uuid4(), **filters)
        assert caught.value.field == "org_id"


async def test_jobs_enqueued_while_paging_do_not_shift_the_pages(
    jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID
) -> None:
    handles = await enqueue(blocking.build, org, range(6))
    first = await jobs.list(org, limit=3)
    await enqueue(blocking.build, org, range(6, 9))
    second = await jobs.list(org, limit=3, after=first.after)
    assert ids([*first.jobs, *second.jobs]) == newest_first(handles)


async def test_jobs_are_found_by_type_and_by_subject(
    jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID
) -> None:
    await enqueue(blocking.build, org, range(5))
    rare = await enqueue(blocking.dig, org, [1, 2])
    await enqueue(blocking.build, org, range(5, 10))
    about = await enqueue(blocking.build, org, range(10, 14), subject_id="doc-7")
    dug = await enqueue(blocking.dig, org, [3], subject_id="doc-7")
    assert ids(await walk(jobs, org, job_type="site.dig")) == newest_first([*rare, *dug])
    assert ids(await walk(jobs, org, subject_id="doc-7")) == newest_first([*about, *dug])
    assert ids(await walk(jobs, org, subject_id="doc-7", job_type="site.dig")) == ids(dug)
    assert await walk(jobs, org, subject_id="doc-8") == []


async def test_a_rare_type_costs_a_bounded_number_of_scans_and_later_pages_find_it(
    jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_MATCHED_PER_SCAN", 2)
    monkeypatch.setattr(listing, "_MAX_SCANS", 3)
    rare = await enqueue(blocking.dig, org, [1])
    await enqueue(blocking.build, org, range(20))
    page = await jobs.list(org, job_type="site.dig")
    assert (page.jobs, page.after is None) == ((), False)
    assert ids(await walk(jobs, org, job_type="site.dig")) == ids(rare)


async def test_jobs_are_found_by_each_status(
    app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("site.fail")
    async def fail() -> None:
        raise Fail("no")

    @app.job("site.remind", category="notification")
    async def remind(n: int) -> None: ...

    with context(org_id=org, actor=ANNA):
        failing = await app.enqueue_many([fail.options(idempotency_key=str(n)).call() for n in range(4)])
        at = datetime.now(UTC) + HOUR
        delayed = await app.enqueue_many([remind.options(scheduled_for=at).call(n) for n in range(4)])
        canceled = await enqueue(blocking.ship, org, range(4))
        for handle in canceled:
            await jobs.cancel(org, handle.job_id, actor=ANNA, reason="no longer needed")
    blocking.release.set()
    done = await enqueue(blocking.dig, org, range(4))
    async with running_workers(app, poll=SOON):
        await assert_completed(done)
        for handle in failing:
            await handle.wait(60)
        blocking.release.clear()
        running = await enqueue(blocking.build, org, range(4))
        await blocking.wait_until_started(8)
        await Limits(app).pause(org, **WHY)
        waiting = await enqueue(blocking.ship, org, range(10, 14), priority=5)
        waiting += await enqueue(blocking.ship, org, range(20, 24))
        held = await walk(jobs, org, status="running")
        queued = await walk(jobs, org, status="queued")
        blocking.release.set()
    assert ids(held) == newest_first(running)
    assert ids(queued) == newest_first([*waiting, *delayed])
    assert ids(await walk(jobs, org, status="queued", job_type="site.remind")) == newest_first(delayed)
    for status, handles in {"canceled": canceled, "failed": failing}.items():
        ended = await walk(jobs, org, status=status)
        assert {job.status for job in ended} == {status}
        assert sorted(ids(ended)) == sorted(ids(handles))
        times = [(job.finished_at, job.job_id) for job in ended]
        assert times == sorted(times, reverse=True)
    assert len(await walk(jobs, org, status="completed")) == 8
    assert sorted(ids(await walk(jobs, org, status="completed", job_type="site.dig"))) == sorted(ids(done))


async def test_a_partial_job_is_found_by_its_status(
    app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    handles = await enqueue(blocking.build, org, range(2))
    async with running_workers(app, poll=NEVER):
        await blocking.wait_until_started(2)
        sql.execute("select duly.leave_plain_path(%s, %s)", [org, handles[0].job_id])
        sql.execute("update duly.job_states set status = 'partial' where job_id = %s", [handles[0].job_id])
        assert ids(await walk(jobs, org, status="partial")) == [handles[0].job_id]
        assert ids(await walk(jobs, org, status="running")) == [handles[1].job_id]
        blocking.release.set()


async def test_jobs_that_ended_at_the_same_time_are_listed_each_once(
    app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    handles = await enqueue(blocking.build, org, range(20))
    blocking.release.set()
    async with running_workers(app, poll=SOON):
        await assert_completed(handles)
    sql.execute("update duly.job_states set finished_at = '2026-01-01'")
    sql.execute("update duly.event_batches set occurred_at = '2026-01-01'")
    assert ids(await walk(jobs, org, status="completed")) == newest_first(handles)


async def test_an_invalid_filter_names_its_field(jobs: Jobs, org: uuid.UUID) -> None:
    for field, values in {
        "status": ["done"],
        "outcome": ["fine"],
        "freshness": ["rotten", "terminal"],
        "limit": [0, 501],
        "after": ["nonsense", "MjAyNiBub3BlIA=="],
        "job_type": [""],
        "queue": [""],
        "created_after": [datetime(2026, 1, 1), "2026-01-01"],
        "created_before": [datetime(2026, 1, 1)],
        "metadata": [{"": 1}, {str(n): n for n in range(11)}],
        "metadata.a": [{"a": [1]}, {"a": float("nan")}, {"a": "\0"}],
    }.items():
        for value in values:
            with pytest.raises(errors.ContractError) as caught:
                await jobs.list(org, **{field.partition(".")[0]: value})
            assert (caught.value.field, bool(caught.value.fix)) == (field, True)
    for filters in ({"status": "failed"}, {"outcome": "dead"}):
        with pytest.raises(errors.ContractError, match="only active jobs"):
            await jobs.list(org, freshness="fresh", **filters)


def test_all_statements_read_the_same_columns_of_a_job() -> None:
    names = ("jobs/read", "jobs/read_many", "jobs/read_status", "jobs/read_statuses")
    matches = [re.search(r"select (org_id.*?) from duly.jobs", " ".join(statement(n).split())) for n in names]
    columns = [found[1].removesuffix(", event_seq") for found in matches if found]
    assert len(columns) == 4
    assert len(set(columns)) == 1


async def test_a_job_is_submitted_by_the_name_of_its_type(
    app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID
) -> None:
    options: dict[str, Any] = {"org_id": org, "actor": ANNA, "idempotency_key": "k1", "priority": 7}
    handle = await jobs.submit("site.build", {"org": str(org), "n": 1}, **options)
    job = await handle.status()
    assert (job.job_type, job.priority, job.actor_type, job.actor_id) == (
        "site.build", 7, "operator", "anna",
    )  # fmt: skip
    assert not (await jobs.submit("site.build", {"org": str(org), "n": 2}, **options)).created
    with pytest.raises(errors.UnknownJobType):
        await jobs.submit("site.nothing", {}, **options)
    with pytest.raises(errors.ContractError) as caught:
        await jobs.submit("site.build", {"org": str(org), "n": "many"}, **options)
    assert caught.value.field == "payload.n"


async def test_a_job_of_another_org_is_unknown(app: Duly, jobs: Jobs, blocking: BlockingJobs) -> None:
    mine, theirs = await create_orgs(app, 2)
    [handle] = await enqueue(blocking.build, theirs, [1])
    with pytest.raises(errors.UnknownJob) as foreign:
        await jobs.show(mine, handle.job_id)
    with pytest.raises(errors.UnknownJob) as unknown:
        await jobs.show(mine, (made_up := uuid.uuid4()))
    assert str(foreign.value).replace(str(handle.job_id), "") == str(unknown.value).replace(str(made_up), "")
    with pytest.raises(errors.UnknownJob):
        await jobs.cancel(mine, handle.job_id, actor=ANNA, reason="r")


async def test_a_job_is_shown_with_its_attempts_and_events(app: Duly, jobs: Jobs, org: uuid.UUID) -> None:
    @app.job("site.flaky", retry=RetryPolicy(max_attempts=2, base=timedelta(microseconds=1)))
    async def flaky() -> None:
        raise OSError("the line is dead")

    with context(org_id=org, actor=ANNA):
        handle = await flaky.enqueue()
    async with running_workers(app, poll=SOON):
        await handle.wait(60)
    detail = await jobs.show(org, handle.job_id)
    assert [a.attempt for a in detail.attempts] == [1, 2]
    assert [a.ended_by for a in detail.attempts] == ["job.retried", "job.deadlettered"]
    assert [e.event_seq for e in detail.events] == [*range(1, len(detail.events) + 1)]
    assert (detail.events[0].event_type, detail.job.outcome) == ("job.queued", "dead")
    [explanation] = detail.explanation
    assert "Failed for good at" in explanation
    assert "after 2 attempts" in explanation
    assert "the line is dead" in explanation


class TestExplanation:
    async def explain(self, jobs: Jobs, handle: Handle[Any]) -> str:
        return " ".join((await jobs.show(handle.org_id, handle.job_id)).explanation)

    async def test_pauses_missing_workers_and_jobs_ahead(
        self, app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID
    ) -> None:
        [first, second] = sorted(await enqueue(blocking.build, org, [1, 2]), key=lambda h: h.job_id)
        assert "No active worker serves the queue q:default." in await self.explain(jobs, first)
        assert "1 job of the same org is ahead in the queue." in await self.explain(jobs, second)
        await Queues(app).pause("q:default", actor=ANNA, reason="disk full")
        await Limits(app).pause(org, actor=ANNA, reason="unpaid")
        await Limits(app).pause(job_type="site.build", actor=ANNA, reason="provider down")
        explanation = await self.explain(jobs, first)
        assert "The queue q:default was paused by operator:anna at" in explanation
        assert ": disk full" in explanation
        assert "The org was paused by operator:anna at" in explanation
        assert "site.build in all orgs was paused by operator:anna at" in explanation

    async def test_exhausted_limits(
        self, app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
    ) -> None:
        await Limits(app).set(org, max_running=1, **WHY)
        await Limits(app).set(org, "site.build", starts_per_second=0.001, **WHY)
        handles = await enqueue(blocking.build, org, [1, 2])
        async with running_workers(app, poll=SOON) as [worker]:
            await blocking.wait_until_started(1)
            await wait_until_idle(worker)
            by_status = {(await h.status()).status: h for h in handles}
            explanation = await self.explain(jobs, by_status["queued"])
            assert "The org has reached its concurrency limit: 1 of 1 jobs are running." in explanation
            assert (
                "site.build in this org has reached its rate limit of 0.001 starts per second." in explanation
            )
            assert f"Attempt 1 of 5 is running on {worker._identity.name}." in await self.explain(
                jobs, by_status["running"]
            )
            sql.execute("update duly.workers set heartbeat_at = heartbeat_at - interval '1 hour'")
            assert "it will be declared lost" in await self.explain(jobs, by_status["running"])
            await Limits(app).set(org, max_running=None, **WHY)
            await Limits(app).set(org, "site.build", starts_per_second=None, **WHY)
            blocking.release.set()
            await assert_completed(handles)
        assert "Succeeded at" in await self.explain(jobs, handles[0])

    async def test_the_next_job_of_its_org(
        self, app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID
    ) -> None:
        async with running_workers(app, slots=1, poll=NEVER):
            [running] = await enqueue(blocking.build, org, [1])
            await blocking.wait_until_started(1)
            [waiting] = await enqueue(blocking.build, org, [2])
            assert "Next in line for its org" in await self.explain(jobs, waiting)
            blocking.release.set()
            await assert_completed([running, waiting])

    async def test_delays_and_retries(self, app: Duly, jobs: Jobs, org: uuid.UUID) -> None:
        @app.job("site.flaky", category="notification", retry=RetryPolicy(delays=(HOUR,)))
        async def flaky(n: int) -> None:
            raise OSError("the line is dead")

        with context(org_id=org, actor=ANNA):
            later = await flaky.options(scheduled_for=datetime.now(UTC) + HOUR).enqueue(1)
            tried = await flaky.enqueue(2)
        async with running_workers(app) as [worker]:
            await worker.loop_events.wait("settled")
        assert "Scheduled for" in await self.explain(jobs, later)
        explanation = await self.explain(jobs, tried)
        assert "1 of 5 attempts used" in explanation
        assert "the line is dead" in explanation

    async def test_a_cancellation(
        self, app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID
    ) -> None:
        [waiting] = await enqueue(blocking.ship, org, [1])
        await jobs.cancel(org, waiting.job_id, actor=ANNA, reason="wrong button")
        assert "by the user: wrong button" in await self.explain(jobs, waiting)
