"""Fill a database with set-based statements: millions of jobs in about a minute.

They write what enqueueing, claiming and completing leave behind in every table that claims and completions
read or write. The ledger, which neither uses, stays empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import psycopg

_CHUNK = 50_000
_SESSIONS = 2
_DAYS = 30
_POLICY = '{"queue": "q:default", "retry": {"max_attempts": 5}}'
_SET = "set synchronous_commit = off; set work_mem = '256MB'; set jit = off"

_RECORD = """
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, actor_type, actor_id,
        request_id, correlation_id, idempotency_key, payload, payload_hash, policy, run_at, created_at)
    select org_id, job_id, job_id, 'bench.noop', 'default', 'q:default', 0, 5, 'system', 'bench', 'r', 'r',
           job_id::text, '{"number": 1}', 'h', %(policy)s, at, at
    from job
"""
_READY = f"""
with job as materialized (
    select (%(orgs)s::uuid[])[1 + n %% cardinality(%(orgs)s::uuid[])] as org_id, duly.uuid7() as job_id,
           now() as at
    from generate_series(%(start)s::bigint, %(start)s + %(count)s - 1) n
), record as ({_RECORD}), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
    select org_id, job_id, 1, 'job.queued', 'queued', 0, at, 'system', 'bench' from job
)
insert into duly.ready (queue, org_id, rank, job_id) select 'q:default', org_id, 0, job_id from job
"""
_HISTORY = f"""
with job as materialized (
    select (%(orgs)s::uuid[])[1 + n %% cardinality(%(orgs)s::uuid[])] as org_id, t.at,
           overlay(overlay(gen_random_uuid()::text placing '7' from 15)
                   placing left(duly.uuid7_floor(t.at)::text, 13) from 1)::uuid as job_id
    from generate_series(%(start)s::bigint, %(start)s + %(count)s - 1) n
    cross join lateral (
        select now() - {_DAYS} * interval '1 day' * (1 - n::double precision / %(total)s) as at) t
), record as ({_RECORD}), state as (
    insert into duly.job_states (
        org_id, job_id, status, outcome, attempt, event_seq, result_seq, progress_percent, run_at, worker_id,
        attempt_started_at, started_at, finished_at, updated_at)
    select org_id, job_id, 'completed', 'succeeded', 1, 3, 1, 100, at, %(worker)s::uuid, at, at, at, at
    from job
), result as (
    insert into duly.result_snapshots (org_id, job_id, result_kind, result_seq, payload, created_at)
    select org_id, job_id, 'final', 1, 'null', at from job
)
insert into duly.event_log (
    org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
select j.org_id, j.job_id, e.seq, e.event_type, e.status, e.attempt, j.at, e.actor_type,
       case e.seq when 1 then 'bench' else %(worker)s::text end
from job j
cross join (values
    (1, 'job.queued', 'queued', 0, 'system'), (2, 'job.started', 'running', 1, 'worker'),
    (3, 'job.completed', 'completed', 1, 'worker')) e(seq, event_type, status, attempt, actor_type)
"""
_PAST = f"""
select duly.make_partition(p.parent, f.at at time zone 'UTC', (f.at + s.step) at time zone 'UTC')
from duly.partitioned_tables p
cross join lateral (select ('1 ' || p.step)::interval as step) s
cross join lateral generate_series(
    date_trunc(p.step, (now() - interval '{_DAYS} days') at time zone 'UTC'),
    date_trunc(p.step, now() at time zone 'UTC'), s.step) f(at)
where p.key_kind = 'uuid7'
"""


def make_orgs(url: str, count: int) -> list[UUID]:
    """Create this many orgs."""
    orgs = [uuid4() for _ in range(count)]
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            "insert into duly.organizations (org_id, name) select o, 'bench' from unnest(%s::uuid[]) o",
            [orgs],
        )
    return orgs


def fill_ready(url: str, orgs: Sequence[UUID], jobs: int) -> None:
    """Create this many runnable jobs, distributed over these orgs."""
    _in_chunks(url, _READY, jobs, {"orgs": list(orgs), "policy": _POLICY})


def fill_history(url: str, orgs: Sequence[UUID], events: int) -> int:
    """Create finished jobs with this many events within the retention; return the number of jobs."""
    jobs = events // 3
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(_PAST)
    values = {"orgs": list(orgs), "policy": _POLICY, "total": jobs, "worker": uuid4()}
    _in_chunks(url, _HISTORY, jobs, values)
    return jobs


def refill(conn: psycopg.Connection[Any], orgs: Sequence[UUID]) -> None:
    """Create one new job for each of these orgs."""
    conn.execute(_READY, {"orgs": list(orgs), "policy": _POLICY, "start": 0, "count": len(orgs)})


def tidy(url: str) -> None:
    """Vacuum, analyze and checkpoint."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("vacuum analyze")
        conn.execute("checkpoint")


def _in_chunks(url: str, command: str, jobs: int, values: dict[str, Any]) -> None:
    """Run and commit in chunks over several connections, to use all cores."""

    def write(start: int) -> None:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(_SET)
            conn.execute(command, {**values, "start": start, "count": min(_CHUNK, jobs - start)})

    with ThreadPoolExecutor(_SESSIONS) as sessions:
        list(sessions.map(write, range(0, jobs, _CHUNK)))
