"""Fill a database with set-based statements: millions of jobs in about a minute.

They write what enqueueing, claiming and completing leave behind: half of the ended jobs with a state, as the
jobs of 0.9 and those that leave the plain path, half on the plain path.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import psycopg

_CHUNK = 1_000
"""Jobs of one transaction: feeds read transactions of the size that clients and workers write."""
_SESSIONS = 2
_DAYS = 30
_LEDGER_DAYS = 7
_SAY_EVERY = 250_000
Say = Callable[[str], None]
_POLICY = '{"queue": "q:default", "retry": {"max_attempts": 5}}'
_SET = "set synchronous_commit = off; set work_mem = '256MB'; set jit = off"

_RECORD = """
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, actor_type, actor_id,
        request_id, correlation_id, idempotency_key, payload, payload_hash, policy, run_at, created_at)
    select org_id, job_id, gen_random_uuid(), 'bench.noop', 'default', 'q:default', 0, 5, 'system', 'bench',
           'r', 'r', 'bench.noop:' || org_id || '::' || hash, '{"number": 1}', hash, %(policy)s, at, at
    from job
"""
_LEAN_RECORD = """
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, actor_type, actor_id,
        request_id, correlation_id, payload, policy_hash, run_at, created_at, queued_xid)
    select org_id, job_id, gen_random_uuid(), 'bench.noop', 'default', 'q:default', 0, 5, 'system', 'bench',
           'r', 'r', '{"number": 1}', duly.policy_hash(%(policy)s), at, at, pg_current_xact_id()
    from job
"""
_LEDGER = f"""
    insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
    select org_id, duly.key_hash('bench.noop:' || org_id || '::' || hash), job_id, at,
           at + interval '{_LEDGER_DAYS} days'
    from job where at > now() - interval '{_LEDGER_DAYS} days'
"""
_LEDGER_OF_0_9 = f"""
    insert into duly.ledger (org_id, idempotency_key, job_id, first_seen_at, last_seen_at, expires_at)
    select org_id, 'bench.noop:' || org_id || '::' || hash, job_id, at, at,
           at + interval '{_LEDGER_DAYS} days'
    from job where at > now() - interval '{_LEDGER_DAYS} days'
"""
_POLICIES = """
    insert into duly.policies (policy_hash, policy, queue, priority, category, max_attempts, ledger_ttl)
    values (duly.policy_hash(%(policy)s), %(policy)s::jsonb, 'q:default', 0, 'default', 5, interval '7 days')
    on conflict do nothing
"""
_HASH = "encode(sha256(convert_to(%(salt)s || n::text, 'UTF8')), 'hex') as hash"
_READY = f"""
with job as materialized (
    select (%(orgs)s::uuid[])[1 + n %% cardinality(%(orgs)s::uuid[])] as org_id, duly.uuid7() as job_id,
           now() as at, {_HASH}
    from generate_series(%(start)s::bigint, %(start)s::bigint + %(count)s - 1) n
), record as ({_LEAN_RECORD}), key as ({_LEDGER}), event as (
    insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
    select b.org_id, b.at, 'job.queued', 1, b.job_ids[1], cardinality(b.job_ids), b.job_ids
    from (select org_id, at, array_agg(job_id) as job_ids from job group by org_id, at) b
)
insert into duly.ready (queue, org_id, rank, job_id, fresh)
select 'q:default', org_id, 0, job_id, true from job
"""
_ENDED = f"""
with job as materialized (
    select (%(orgs)s::uuid[])[1 + n %% cardinality(%(orgs)s::uuid[])] as org_id, t.at, {_HASH},
           overlay(overlay(gen_random_uuid()::text placing '7' from 15)
                   placing left(duly.uuid7_floor(t.at)::text, 13) from 1)::uuid as job_id
    from generate_series(%(start)s::bigint, %(start)s::bigint + %(count)s - 1) n
    cross join lateral (
        select now() - {_DAYS} * interval '1 day' * (1 - n::double precision / %(total)s::bigint) as at) t
)"""
_WITH_STATE = f"""{_ENDED}, record as ({_RECORD}), key as ({_LEDGER}), state as (
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
_PLAIN = f"""{_ENDED}, record as ({_LEAN_RECORD}), key as ({_LEDGER}), ended as (
    insert into duly.job_ends (org_id, job_id, worker_id, started_at, finished_at, start_xid, has_result)
    select org_id, job_id, %(worker)s::uuid, at, at, pg_current_xact_id(), false from job
)
insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
select j.org_id, j.at, e.event_type, e.seq, j.job_ids[1], cardinality(j.job_ids), j.job_ids
from (select org_id, max(at) as at, array_agg(job_id) as job_ids from job group by org_id) j
cross join (values ('job.queued', 1), ('job.started', 2), ('job.completed', 3)) e(event_type, seq)
"""
_PAST = f"""
select duly.make_partition(p.parent, f.at at time zone 'UTC', (f.at + s.step) at time zone 'UTC')
from duly.partitioned_tables p
cross join lateral (select ('1 ' || p.step)::interval as step) s
cross join lateral generate_series(
    date_trunc(p.step, (now() - interval '{_DAYS} days') at time zone 'UTC'),
    date_trunc(p.step, now() at time zone 'UTC'), s.step) f(at)
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


def fill_ready(url: str, orgs: Sequence[UUID], jobs: int, say: Say = str) -> None:
    """Create this many runnable jobs, distributed over these orgs."""
    _store_policy(url)
    _in_chunks(url, [_READY], jobs, _values(orgs), say)


def fill_history(url: str, orgs: Sequence[UUID], jobs: int, say: Say = str) -> None:
    """Create this many ended jobs within the retention of their events, half of them on the plain path."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(_PAST)
    _store_policy(url)
    values = {**_values(orgs), "total": jobs, "worker": uuid4()}
    _in_chunks(url, [_WITH_STATE, _PLAIN], jobs, values, say)


def fill_release_0_9(url: str, orgs: Sequence[UUID], jobs: int, say: Say = str) -> None:
    """Create this many ended jobs in a database of 0.9."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(_PAST)
    values = {**_values(orgs), "total": jobs, "worker": uuid4()}
    _in_chunks(url, [_WITH_STATE.replace(_LEDGER, _LEDGER_OF_0_9)], jobs, values, say)


def refill(conn: psycopg.Connection[Any], orgs: Sequence[UUID]) -> None:
    """Create one new job for each of these orgs."""
    conn.execute(_READY, {**_values(orgs), "start": 0, "count": len(orgs)})


def tidy(url: str) -> None:
    """Vacuum, analyze and checkpoint."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("vacuum analyze")
        conn.execute("checkpoint")


def _store_policy(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(_POLICIES, {"policy": _POLICY})


def _values(orgs: Sequence[UUID]) -> dict[str, Any]:
    # Every fill has payloads of its own: no key is used twice.
    return {"orgs": list(orgs), "policy": _POLICY, "salt": uuid4().hex}


def _in_chunks(url: str, commands: Sequence[str], jobs: int, values: dict[str, Any], say: Say) -> None:
    """Commit in chunks, each by the next of the commands, over several connections, to use all cores."""
    began, step = time.monotonic(), _CHUNK * _SESSIONS

    def write(session: int) -> None:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(_SET)
            for start in range(session * _CHUNK, jobs, step):
                command = commands[start // step % len(commands)]
                count = min(_CHUNK, jobs - start)
                conn.execute(command, {**values, "start": start, "count": count}, prepare=True)
                if session == 0 and start and start // _SAY_EVERY > (start - step) // _SAY_EVERY:
                    left = (time.monotonic() - began) * (jobs - start) / start
                    say(f"  {start:,} of {jobs:,} jobs, about {left / 60:.1f} minutes left")

    with ThreadPoolExecutor(_SESSIONS) as sessions:
        list(sessions.map(write, range(_SESSIONS)))
