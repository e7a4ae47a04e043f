"""Sample jobs of all statuses over two days: one per hour and org."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg

HOURS = 48
_FILL = """
with job as materialized (
    select o.org_id, n, t.at, now() - make_interval(mins => 60 - n) as ended_at,
           overlay(duly.uuid7()::text placing left(duly.uuid7_floor(t.at)::text, 13) from 1)::uuid as job_id,
           (array['queued', 'running', 'partial', 'completed', 'failed', 'canceled', 'later', 'retried'])
               [n %% 8 + 1] as what,
           (array['q:default', 'q:exports'])[n %% 2 + 1] as queue, 'type.' || n %% 3 as job_type
    from unnest(%(orgs)s::uuid[]) o(org_id)
    cross join generate_series(1, %(hours)s) n
    cross join lateral (select now() - make_interval(hours => n) as at) t
), record as (
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, subject_id,
        actor_type, actor_id, request_id, correlation_id, idempotency_key, payload, payload_hash, policy,
        metadata, run_at, created_at)
    select org_id, job_id, gen_random_uuid(), job_type, 'default', queue, n %% 2, 5,
           case when n %% 5 < 3 then 'doc-' || n %% 5 end, 'user', 'u1', 'r', 'r', n::text,
           jsonb_build_object(
               'region', (array['DE', 'FR', null])[n %% 3 + 1], 'express', n %% 2 = 0, 'net', 1.50,
               'items', jsonb_build_array(jsonb_build_object('sku', 'X' || n %% 4))), 'h',
           case when n %% 7 = 0 then '{"lifecycle": {"covered": false}}'::jsonb else '{}' end,
           case when n %% 4 > 0 then jsonb_build_object('customer', 'c-' || n %% 4, 'n', n %% 2) end, at, at
    from job
), state as (
    insert into duly.job_states (
        org_id, job_id, status, outcome, attempt, event_seq, run_at, worker_id, attempt_started_at,
        updated_at, finished_at, progress_percent, error_code, error_message, retryable, canceled_by,
        cancel_reason)
    select org_id, job_id,
           case what when 'retried' then 'queued' else what end,
           case what when 'completed' then (array['succeeded', 'partially_succeeded'])[n / 8 %% 2 + 1]
                     when 'failed' then (array['failed', 'blocked', 'dead'])[n / 8 %% 3 + 1]
                     when 'canceled' then 'canceled' else 'pending' end,
           1, 2, at, %(worker)s, at, at,
           -- The other way around: the first to begin is the last to end.
           case when what in ('completed', 'failed', 'canceled') then ended_at end,
           case what when 'completed' then 100 else 0 end, 'e', 'm', false, 'user', 'r'
    from job where what not in ('queued', 'later')
), ready as (
    insert into duly.ready (queue, org_id, rank, job_id)
    select queue || case when n %% 3 = 0 then '#' || job_type else '' end, org_id, -(n %% 2), job_id
    from job where what in ('queued', 'retried')
), scheduled as (
    insert into duly.scheduled (run_at, org_id, job_id, queue, rank)
    select at, org_id, job_id, queue, -(n %% 2) from job where what = 'later'
), letter as (
    insert into duly.dead_letters (
        org_id, job_id, job_type, queue, attempts, fingerprint, error_code, error_class, error_message,
        dead_at)
    select org_id, job_id, job_type, queue, 5, 'f' || n / 24 %% 2, 'e', 'E', 'm', ended_at
    from job where what = 'failed' and n / 8 %% 3 = 2
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
    select org_id, job_id, 2, 'job.' || what, what, 1, ended_at, 'worker', 'w'
    from job where what in ('completed', 'failed', 'canceled')
    union all
    select org_id, job_id, 1, 'job.queued', 'queued', 0, at, 'user', 'u1' from job
), worker as (
    insert into duly.workers (worker_id, name, host, pid, version, layout, queues, slots, lease)
    values (%(worker)s, 'w', 'h', 1, '0', 4, array['q:default'], 20, interval '1 hour')
)
insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids)
select gen_random_uuid(), %(worker)s, at, array_agg(org_id), array_agg(job_id)
-- Twice, as if each had been tried, and had left a claim whose other jobs are still at work.
from job cross join generate_series(1, 2) claim where what in ('running', 'partial', 'retried')
group by at, claim
"""
_ALL = """
select j.job_id, j.status, j.outcome, j.job_type, j.queue, j.subject_id, j.metadata, j.created_at,
       j.finished_at, j.policy -> 'lifecycle' is not null as uncovered, j.error_code, j.payload,
       (select l.fingerprint from duly.dead_letters l where l.job_id = j.job_id) as fingerprint
from duly.jobs j where j.org_id = %s
"""


def fill(sql: psycopg.Connection[Any], *orgs: uuid.UUID) -> None:
    """Insert the same jobs for each org."""
    sql.execute(_FILL, {"orgs": list(orgs), "hours": HOURS, "worker": uuid.uuid4()})


def all_of(sql: psycopg.Connection[Any], org: uuid.UUID) -> Iterator[dict[str, Any]]:
    """Yield every job of an org, read directly from the tables."""
    cursor = sql.execute(_ALL, [org])
    names = [column.name for column in cursor.description or ()]
    for row in cursor.fetchall():
        yield dict(zip(names, row, strict=True))
