"""Reads of consoles and pollers cost the same at any size."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from duly.core.freshness import Freshness
from duly.core.states import Outcome, Status
from duly.db.database import Database
from duly.db.pool import Connection, PoolSize
from duly.db.rows import PREFER_INDEX_ORDER, rows
from duly.features.dead_letters import store as dead_letters
from duly.features.job_detail import store as job_detail_store
from duly.features.jobs import all_orgs_store
from duly.features.jobs import store as job_lists
from duly.features.jobs.filter import NEWEST, JobCursor, JobFilter
from duly.features.metrics.store import read_totals
from duly.features.orgs import store as orgs
from duly.features.overview import store as overview
from duly.features.pagination import Count
from duly.jobs import store as job_store
from duly.jobs.status_batcher import read_status, read_statuses
from duly.testing import DatabaseCluster
from duly.worker import queue_stats as minutes
from tests.plans.plan_recorder import OPTIONS, PlanRecorder
from tests.plans.test_listing import fill

_MORE = """
with job as materialized (
    select s.org_id, s.job_id, row_number() over (order by s.job_id) as n
    from duly.job_states s where s.finished_at is not null
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, commit_xid)
    select org_id, job_id, e.n, (array['job.queued', 'job.failed', 'job.canceled', 'job.completed'])[e.n],
           'failed', 1, now() - make_interval(secs => job.n), 'worker', 'w', (1000 + job.n / 10)::text::xid8
    from job cross join generate_series(1, 4) e(n)
), letter as (
    insert into duly.dead_letters (
        org_id, job_id, job_type, queue, attempts, fingerprint, error_code, error_class, error_message,
        dead_at)
    select org_id, job_id, 't', 'q:default', 5, 'f' || n % 9, 'e', 'E', 'm', now() from job
), final as (
    insert into duly.result_snapshots (org_id, job_id, result_kind, result_seq, payload, created_at)
    select org_id, job_id, 'final', 100, '1', now() from job
), minute as (
    insert into duly.queue_minutes
    select date_trunc('minute', now()) - make_interval(mins => n), 'q:' || q, gen_random_uuid(), 9, 9, 0, 0,
           0, 1, '{1,2}', '{5,4}', '{7}', '{9}'
    from generate_series(0, 1439) n cross join generate_series(1, 3) q cross join generate_series(1, 2)
), org as (
    insert into duly.organizations (org_id, name) select gen_random_uuid(), 'o' from generate_series(1, 5000)
)
insert into duly.result_snapshots (org_id, job_id, result_kind, result_seq, payload, created_at)
select org_id, job_id, 'partial', p.n, '1', now()
from job cross join generate_series(1, 99) p(n) where job.n % 100 = 0
"""
CAP = 100


class Rich(NamedTuple):
    """A database of many jobs with their records; half of them belong to one org."""

    url: str
    org: uuid.UUID
    sql: psycopg.Connection[Any]

    def jobs_of(self, table: str, also: str = "true", count: int = 1) -> list[uuid.UUID]:
        """Return jobs of the org that have a row there."""
        query = f"select job_id from duly.{table} where org_id = %s and {also} order by job_id limit %s"
        return [row[0] for row in self.sql.execute(query, [self.org, count]).fetchall()]


@pytest.fixture(scope="module")
def rich(cluster: DatabaseCluster) -> Iterator[Rich]:
    with cluster.fresh() as made, psycopg.connect(made.direct_url, autocommit=True) as sql:
        org = fill(sql)
        sql.execute(_MORE)
        sql.execute("vacuum analyze")
        yield Rich(made.direct_url, org, sql)


@asynccontextmanager
async def recorded(url: str, plans: str = "auto") -> AsyncIterator[tuple[Database, PlanRecorder]]:
    """A database of one connection whose plans are recorded."""
    options = f"{OPTIONS} -c plan_cache_mode={plans}"
    async with Database(make_conninfo(url, options=options), size=PoolSize(1, 1)) as database:
        async with database.engine() as conn:
            trace = PlanRecorder(conn)
        yield database, trace


def check(trace: PlanRecorder, **bounds: int) -> None:
    assert trace.plans
    assert trace.scans <= {"claims"}  # small tables
    # For a node with many loops the server reports the average.
    assert {table: rows for table, rows in trace.read.items() if round(rows) > bounds.get(table, 0)} == {}


ACTIVE = (Status.QUEUED, Status.RUNNING, Status.PARTIAL)
FILTERS: list[dict[str, Any]] = [
    {},
    {"subject_id": "doc-8"},
    {"subject_id": "doc-8", "statuses": ACTIVE, "freshness": Freshness.FRESH},
    *({"statuses": (status,)} for status in Status),
    {"statuses": ACTIVE},
    {"statuses": ACTIVE, "queue": "q:default"},
    {"fingerprint": "f1"},
    {"fingerprint": "f1", "statuses": (Status.FAILED,)},
]
HOUR = timedelta(hours=1)
NOW = datetime.now(UTC)
NOTHING: list[dict[str, Any]] = [
    {"created_before": NOW - HOUR},
    {"created_after": NOW + HOUR},
    {"created_before": NOW - HOUR, "subject_id": "doc-8"},
    {"created_after": NOW + HOUR, "statuses": (Status.QUEUED,)},
]
"""All jobs are of now: what their ids tell is not read at all."""


@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
async def test_no_list_reads_more_rows_than_its_page(rich: Rich, plans: str) -> None:
    async with recorded(rich.url, plans) as (database, trace):
        # One step to each lane and priority is always read.
        for chosen, cap in [*((one, 51) for one in FILTERS), *((one, 0) for one in NOTHING)]:
            job_filter = JobFilter(rich.org, **chosen)
            each = {"job_records": cap, "job_states": max(cap, 100), "claims": 1}
            async with session(database, job_filter) as conn:
                await conn.execute(PREFER_INDEX_ORDER)
                trace.plans.clear()
                found, _ = await job_lists.scan(conn, job_filter, NEWEST, limit=51)
            of_none = job_filter.statuses in ((Status.PARTIAL,), (Status.CANCELED,))
            assert bool(found) == (cap > 0 and not of_none)
            check(trace, ready=10 + 3 * cap, scheduled=cap, dead_letters=cap, **each)


@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
async def test_no_list_of_all_orgs_reads_more_rows_than_its_page(rich: Rich, plans: str) -> None:
    async with recorded(rich.url, plans) as (database, trace):
        for chosen in FILTERS:
            job_filter = JobFilter(None, **chosen)
            async with database.engine() as conn:
                await conn.execute(PREFER_INDEX_ORDER)
                await conn.execute(f"set local plan_cache_mode = {plans}")
                trace.plans.clear()
                found, end = await job_lists.scan(conn, job_filter, NEWEST, limit=51)
                while end is not None and not found:
                    found, end = await job_lists.scan(conn, job_filter, end, limit=51)
            assert bool(found) == (job_filter.statuses != (Status.PARTIAL,)), chosen
            # One more of each partition.
            check(trace, event_log=51 + 10, ready=60, scheduled=51, dead_letters=51, job_states=200, claims=1)
            trace.plans.clear()
            async with database.engine() as conn:
                read = await all_orgs_store.read_jobs(conn, found)
            assert len(read) == len(found)
            if found:
                check(trace, job_records=51, job_states=51)


async def test_jobs_are_counted_by_status_up_to_the_limit(rich: Rich) -> None:
    async with recorded(rich.url) as (database, trace):
        for org in (rich.org, None):
            trace.plans.clear()
            async with database.engine() as conn:
                found = await job_lists.count_by_status(conn, org, limit=CAP)
            assert found[Status.QUEUED] == found[Status.FAILED] == Count(count=CAP, at_least=True)
            cap = 2 * (CAP + 1)
            check(trace, ready=cap, scheduled=cap, event_log=cap, job_states=3 * (CAP + 1) + 200, claims=1)


async def test_finding_the_org_of_a_job_takes_one_step_per_org(rich: Rich) -> None:
    [job] = rich.jobs_of("job_records")
    rich.sql.execute(
        "insert into duly.organizations (org_id, name) values (%s, 'o') on conflict do nothing", [rich.org]
    )
    async with recorded(rich.url) as (database, trace):
        async with database.engine() as conn:
            trace.plans.clear()
            assert await all_orgs_store.find_org(conn, job) == rich.org
        check(trace, organizations=5_002, job_records=1)


@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
async def test_matching_reads_each_job_once(rich: Rich, plans: str) -> None:
    jobs = rich.jobs_of("job_records", count=50)
    async with recorded(rich.url, plans) as (database, trace):
        for chosen, states in (
            ({"metadata": '{"n": "1"}', "queue": "q:default", "created_after": NOW - HOUR}, 0),
            ({"statuses": (Status.COMPLETED,), "subject_id": "doc-8"}, 50),
            ({"statuses": (Status.FAILED,), "outcome": Outcome.FAILED}, 100),
            ({"statuses": ACTIVE, "job_type": "type.2"}, 0),
            ({"payload": '[{"path": ["region"], "value": "DE"}]', "type_prefix": "type."}, 0),
            ({"error_code": "e", "fingerprint": "f1", "subject_id": "doc-8", "open_dead_letter": True}, 50),
        ):
            job_filter = JobFilter(rich.org, **chosen)
            async with session(database, job_filter) as conn:
                await conn.execute(PREFER_INDEX_ORDER)
                trace.plans.clear()
                await job_lists.match(conn, job_filter, [JobCursor(None, job, rich.org) for job in jobs])
            check(trace, job_records=50, job_states=states, dead_letters=50, claims=50)


def session(database: Database, job_filter: JobFilter) -> AbstractAsyncContextManager[Connection]:
    return database.engine() if job_filter.needs_engine else database.tenant(job_filter.org_id)


async def test_a_status_reads_one_row_of_each_job(rich: Rich) -> None:
    waiting = [*rich.jobs_of("ready"), *rich.jobs_of("scheduled")]
    others = [
        *rich.jobs_of("job_states", "finished_at is null"),
        *rich.jobs_of("job_states", "status = 'failed'"),
    ]
    assert len({*waiting, *others}) == 4
    async with recorded(rich.url) as (database, trace):
        for job in (*waiting, *others):
            trace.plans.clear()
            assert await read_status(database, rich.org, job)
            # The record and the state, each read by the org and by the engine.
            check(trace, job_records=2, job_states=2, ready=1, scheduled=1, claims=1)
        trace.plans.clear()
        assert len(await read_statuses(database, rich.org, [*waiting, *others])) == 4
        check(trace, job_records=8, job_states=8, ready=4, scheduled=4, claims=4)


async def test_metrics_are_counted_up_to_the_limit(rich: Rich) -> None:
    day, org = timedelta(days=1), rich.org
    ended = {"scheduled": CAP + 11, "claims": 1, "job_states": 50 + 3 * (CAP + 1), "dead_letters": CAP + 1}
    async with recorded(rich.url) as (database, trace):
        for read_statuses, bounds in (
            # Three priorities: a step to each, the heads of each, and the count.
            (
                lambda conn: overview.list_queued(conn, org, limit=CAP, heads=10),
                {"ready": 10 + 3 * 10 + CAP + 1, "job_records": 30, "job_states": 30},
            ),
            (lambda conn: overview.read_org(conn, org, limit=CAP, heads=10, since=day), ended),
            (
                lambda conn: overview.read_platform(conn, limit=CAP, since=day),
                {"organizations": CAP + 2, "event_log": 2 * (CAP + 1)},
            ),
            (lambda conn: read_totals(conn, limit=CAP), {"dead_letters": CAP + 1, "event_log": 1}),
        ):
            trace.plans.clear()
            async with database.engine() as conn:
                assert await read_statuses(conn)
            check(trace, **bounds)


async def test_a_dashboard_reads_what_it_shows_and_no_more(rich: Rich) -> None:
    day, org = timedelta(days=1), rich.org
    # A step to each of nine kinds; of five the first, the last, and the count. Averages are rounded.
    letters = 10 + 5 * (2 + CAP + 1)
    new = "insert into duly.organizations (org_id, name) values (%s, 'large') on conflict do nothing"
    rich.sql.execute(new, [org])
    async with recorded(rich.url) as (database, trace):
        for read_statuses, owner, bounds in (
            # Six rows a minute, once more for each histogram.
            (lambda conn: minutes.list_minutes(conn, HOUR), None, {"queue_minutes": 3 * 61 * 6}),
            (
                lambda conn: dead_letters.list_failure_groups(conn, None, limit=5, max_count=CAP),
                None,
                {"dead_letters": letters + 5 * 200, "organizations": 5},
            ),
            (
                lambda conn: dead_letters.list_failure_groups(conn, org, limit=5, max_count=CAP),
                org,
                {"dead_letters": letters},
            ),
            (
                lambda conn: minutes.list_ended(conn, org, day, limit=CAP),
                org,
                {"job_states": 2 * CAP + 1, "job_records": 2 * CAP + 1},
            ),
            (
                lambda conn: overview.list_org_queues(conn, org, limit=CAP, since=day),
                None,
                {"scheduled": CAP + 1, "claims": 1, "job_states": 100, "job_records": 100},
            ),
            (
                lambda conn: orgs.read_activity(conn, max_steps=CAP, max_claimed=60),
                None,
                {"ready": CAP + 1, "claims": 1, "job_states": 60},
            ),
            (
                lambda conn: orgs.read_backlogs(conn, [org], max_count=CAP),
                None,
                {"organizations": 1, "ready": CAP + 10, "job_records": 3},
            ),
        ):
            session = database.engine() if owner is None else database.tenant(owner)
            async with session as conn:
                await conn.execute(PREFER_INDEX_ORDER if owner else "select 1")
                trace.plans.clear()
                assert await read_statuses(conn)
            check(trace, **bounds)


async def test_snapshots_and_heads_are_read_by_their_keys(rich: Rich) -> None:
    [job], org = rich.jobs_of("result_partials"), rich.org
    async with recorded(rich.url) as (database, trace):
        for read_statuses, bounds in (
            # The permalinks of these jobs are their own ids.
            (lambda conn: job_store.find_result_job(conn, org, job), {"job_records": 1}),
            (lambda conn: job_store.read_result(conn, org, job, 100), {"result_finals": 1}),
            (
                lambda conn: job_store.read_result(conn, org, job, 40),
                {"result_finals": 1, "result_partials": 1},
            ),
            (
                lambda conn: job_store.list_results_after(conn, org, job, 50, limit=10, size=1000),
                {"result_finals": 1, "result_partials": 10},
            ),
        ):
            for _ in range(8):  # until the plan is cached
                trace.plans.clear()
                async with database.tenant(org) as conn:
                    assert await read_statuses(conn)
            check(trace, **bounds)
        keys = [(org, one) for one in rich.jobs_of("job_records", count=100)]
        trace.plans.clear()
        async with database.engine() as conn:
            assert len(await job_store.read_event_heads(conn, keys)) == 100
        check(trace, job_states=100)


async def test_the_detail_of_a_job_is_read_by_its_keys(rich: Rich) -> None:
    [job], org = rich.jobs_of("result_partials"), rich.org
    [[events]] = rich.sql.execute("select count(*) from duly.event_log where job_id = %s", [job]).fetchall()
    rich.sql.execute("update duly.job_states set partial_count = 99 where job_id = %s", [job])
    rich.sql.execute(
        """insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
           select org_id, duly.key_hash(job_id::text), job_id, now(), now() from duly.job_records
           union all
           select %s, duly.key_hash('replay:' || %s || ':' || n), %s, now(), now()
           from generate_series(1, 2) n""",
        [org, job, job],
    )
    rich.sql.execute("analyze duly.key_ledger")
    async with recorded(rich.url) as (database, trace), database.tenant(org) as conn:
        for _ in range(8):  # until the plan is cached
            trace.plans.clear()
            found = await job_detail_store.read_job_record(conn, org, job, compared=[])
        check(
            trace,
            job_records=2,  # once more for its first event
            job_states=1,
            event_log=events,
            result_partials=50,
            result_finals=0,
            dead_letters=1,
        )
        assert found is not None
        for _ in range(8):
            trace.plans.clear()
            await job_detail_store.list_relatives(conn, *found[:2], NOW)
        check(trace, job_records=1_000 + 20, job_states=20, key_ledger=2)


async def test_failure_groups_are_found_in_steps_and_counted_up_to_the_limit(rich: Rich) -> None:
    sql, org = rich.sql, rich.org
    sql.execute(
        "update duly.dead_letters set fingerprint = 'solved', resolution = 'discarded', "
        "resolved_at = now(), resolved_by = 'x', resolve_reason = 'x' where fingerprint = 'f8'"
    )
    sql.execute("vacuum analyze duly.dead_letters")
    async with recorded(rich.url) as (database, trace):
        for _ in range(8):  # until the plan is cached
            trace.plans.clear()
            async with database.tenant(org) as conn:
                values = {"org_id": org, "max_groups": 500, "limit": 500, "max_count": CAP}
                assert len(await rows(conn, "dead_letters/group_one_org", values)) == 8
        # A step to each, its first and its last, and the count.
        check(trace, dead_letters=8 * (5 + CAP + 1))
        trace.plans.clear()
        async with database.engine() as conn:
            found = await rows(conn, "dead_letters/group_by_org", {"limit": 20, "max_count": CAP})
        assert len({(row["org_id"], row["fingerprint"]) for row in found}) == 20
        check(trace, dead_letters=20 * (5 + CAP))
        trace.plans.clear()
        async with database.tenant(org) as conn:
            group = await dead_letters.read_group(conn, org, "f1")
        assert group is not None
        # The last thousand, once; the latest, the first and the count.
        check(trace, dead_letters=1_000 + 2 + group.letters, job_records=0)
