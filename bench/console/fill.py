"""Fill a database: half of the jobs belong to one large org, the others to 2,000 small ones.

Of twenty jobs twelve are completed, three failed (two of them dead, of 25 kinds), one is canceled, three are
queued and one is running. They have events, snapshots, log lines, dead letters, deliveries, audit entries.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID, uuid4

import psycopg

_ORGS = 2_000
_SET = "set synchronous_commit = off; set work_mem = '256MB'; set jit = off"
_JOBS = """
with org as (
    insert into duly.organizations (org_id, name)
    select gen_random_uuid(), 'Org ' || n from generate_series(1, %(orgs)s) n returning org_id
), job as materialized (
    select case when n %% 2 = 0 then %(large)s::uuid else o.ids[1 + n / 2 %% %(orgs)s] end as org_id, n, t.at,
           overlay(overlay(gen_random_uuid()::text placing '7' from 15)
                   placing left(duly.uuid7_floor(t.at)::text, 13) from 1)::uuid as job_id,
           (array['completed', 'completed', 'completed', 'completed', 'completed', 'completed', 'completed',
                  'completed', 'completed', 'completed', 'completed', 'completed', 'dead', 'dead', 'failed',
                  'canceled', 'ready', 'ready', 'later', 'running'])[1 + n / 2 %% 20] as what,
           (array['report.build', 'invoice.send', 'import.rows', 'plan.route'])[1 + n / 7 %% 4] as job_type,
           (array['q:default', 'q:exports', 'q:planning'])[1 + n / 11 %% 3] as queue,
           md5('kind ' || n / 40 %% 25) as kind, md5('worker ' || n %% 20)::uuid as worker_id
    from generate_series(1, %(jobs)s) n
    cross join (select array_agg(org_id) as ids from org) o
    cross join lateral (select now() - interval '7 days' * power(n::float8 / %(jobs)s, 2) as at) t
), record as (
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, subject_id, actor_type,
        actor_id, request_id, correlation_id, idempotency_key, payload, payload_hash, policy, run_at,
        created_at)
    select org_id, job_id, gen_random_uuid(), job_type, 'default', queue, 0, 5,
           case when n %% 3 = 0 then 'order-' || n %% 5000 end, 'user', 'u' || n %% 50, 'r', 'c-' || n / 3,
           job_id::text, jsonb_build_object('region', (array['DE', 'FR', 'IT', 'PL'])[1 + n %% 4],
                                            'rows', n %% 1000, 'password', 'never shown'),
           'h', '{}', at, at from job
), state as (
    insert into duly.job_states (
        org_id, job_id, status, outcome, attempt, event_seq, result_seq, partial_count, run_at, worker_id,
        attempt_started_at, started_at, finished_at, updated_at, progress_percent, error_code, error_message,
        retryable, canceled_by, cancel_reason)
    select org_id, job_id, case what when 'dead' then 'failed' else what end,
           case what when 'completed' then 'succeeded' when 'running' then 'pending' else what end, 1, 3,
           case what when 'completed' then 1 else 0 end, 0, at, worker_id, at + interval '1 second',
           at + interval '1 second',
           case when what <> 'running' then at + interval '1 second' * (1 + n %% 30) end, at,
           case what when 'completed' then 100 else 0 end,
           case when what in ('dead', 'failed') then 'error.' || left(kind, 4) end,
           case when what in ('dead', 'failed') then 'the other side said ' || kind end, what = 'dead',
           case what when 'canceled' then 'user' end, case what when 'canceled' then 'not needed' end
    from job where what not in ('ready', 'later')
), ready as (
    insert into duly.ready (queue, org_id, rank, job_id)
    select queue, org_id, 0, job_id from job where what = 'ready'
), scheduled as (
    insert into duly.scheduled (run_at, org_id, job_id, queue, rank)
    select now() + interval '1 second' * n, org_id, job_id, queue, 0 from job where what = 'later'
), worker as (
    insert into duly.workers (worker_id, name, host, pid, version, layout, queues, slots, lease)
    select distinct worker_id, 'host-' || left(worker_id::text, 4), 'host', 1, '1', 4, array['q:default'],
           500, interval '1 hour' from job
), gone as (
    insert into duly.workers (
        worker_id, name, host, pid, version, layout, queues, slots, lease, started_at, heartbeat_at,
        stopped_at)
    select gen_random_uuid(), 'gone-' || n, 'host', n, '1', 4, array['q:default'], 100, interval '30 seconds',
           t.at, t.at, t.at
    from generate_series(1, 2000) n cross join lateral (select now() - interval '1 hour' * n as at) t
), claim as (
    insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids)
    select gen_random_uuid(), worker_id, now(), array_agg(org_id), array_agg(job_id)
    from job where what = 'running' group by worker_id, n / 400
), letter as (
    insert into duly.dead_letters (
        org_id, job_id, job_type, queue, attempts, fingerprint, error_code, error_class, error_message,
        dead_at)
    select org_id, job_id, job_type, queue, 5, kind, 'error.' || left(kind, 4), 'ConnectionError',
           'the other side said ' || kind, at from job where what = 'dead'
), result as (
    insert into duly.result_snapshots (org_id, job_id, result_kind, result_seq, payload, created_at)
    select org_id, job_id, 'final', 1, '{"rows": 12}', at from job where what = 'completed'
), line as (
    insert into duly.job_logs (org_id, job_id, attempt, line_seq, logged_at, level, message)
    select org_id, job_id, 1, 1, at, 'info', 'begun' from job where what = 'dead'
), notification as (
    insert into duly.notifications (
        org_id, notification_id, job_id, channel, recipient, template_key, locale, payload, payload_hash,
        schedule_bucket, delivery_status, attempt_count, scheduled_at, sent_at, created_by, created_at)
    select org_id, job_id, job_id, 'inbox', 'u' || n %% 50, 'job.failed', 'en', '{}', job_id::text, '',
           'sent', 1, at, at, 'system', at from job where what in ('dead', 'canceled')
), audit as (
    insert into duly.audit_entries (
        org_id, entry_id, occurred_at, actor_type, actor_id, action, target_type, target_id, reason)
    select org_id, gen_random_uuid(), at, 'user', 'u' || n %% 50,
           (array['job.canceled', 'dead_letter.replayed', 'key.created'])[1 + n %% 3], 'job', job_id::text,
           'because' from job where n %% 5 < 2
), endpoint as (
    insert into duly.webhook_endpoints (org_id, endpoint_id, url, event_types, created_by)
    values (%(large)s, %(endpoint)s, 'https://shop.example/hook', array['job.completed'], 'user:u1')
), delivery as (
    insert into duly.webhook_deliveries (
        org_id, endpoint_id, job_id, event_seq, event_type, status, tries, due_at, created_at, ended_at)
    select org_id, %(endpoint)s, job_id, 3, 'job.completed', 'delivered', 1, at, at, at
    from job where what = 'completed' and org_id = %(large)s
), schedule as (
    insert into duly.schedules (
        org_id, schedule_id, name, cron, job_type, next_tick_at, last_tick_at, created_by)
    select org_id, gen_random_uuid(), 'nightly ' || row_number() over (), '0 3 * * *', 'report.build',
           now() + interval '1 hour', now() - interval '1 day', 'user:u1'
    from (select org_id from org union all select %(large)s from generate_series(1, 100)) o
), alert as (
    insert into duly.alerts (org_id, alert_id, kind, target, severity, summary, fired_at)
    select org_id, gen_random_uuid(), 'dead_letter', job_id::text, 'warning', 'a job died', at
    from job where what = 'dead' and n %% 4 = 0
)
insert into duly.event_log (
    org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
select org_id, job_id, e.seq, e.event_type, e.status, 1, at + interval '1 second' * e.seq, 'worker', 'w'
from job cross join lateral (values
    (1, 'job.queued', 'queued'), (2, 'job.started', 'running'),
    (3, case what when 'dead' then 'job.deadlettered' else 'job.' || what end,
     case what when 'dead' then 'failed' else what end)) e(seq, event_type, status)
where e.seq = 1 or (e.seq = 2 and what not in ('ready', 'later'))
   or (e.seq = 3 and what in ('completed', 'dead', 'failed', 'canceled'))
"""


class Stock(NamedTuple):
    """The ids of what was created."""

    large: UUID
    """The org that owns half of the jobs."""
    jobs: dict[str, UUID]
    """One of its jobs per state."""
    kind: str
    """A fingerprint of dead letters."""
    endpoint: UUID
    schedule: UUID
    schedule_name: str
    notification: UUID
    message: str
    """The id of a webhook message."""


def fill(conn: psycopg.Connection[tuple[object, ...]], jobs: int) -> Stock:
    """Create this many jobs with all their records."""
    large, endpoint = uuid4(), uuid4()
    conn.execute(_SET)
    conn.execute("insert into duly.organizations (org_id, name) values (%s, 'Large')", [large])
    conn.execute(_JOBS, {"large": large, "endpoint": endpoint, "jobs": jobs, "orgs": _ORGS})
    conn.execute("vacuum analyze")
    found = conn.execute(
        "select distinct on (outcome) outcome, job_id from duly.job_states where org_id = %s", [large]
    )
    [[kind]] = conn.execute(
        "select fingerprint from duly.dead_letters where org_id = %s limit 1", [large]
    ).fetchall()
    [[schedule, name]] = conn.execute(
        "select schedule_id, name from duly.schedules where org_id = %s limit 1", [large]
    ).fetchall()
    [[notification]] = conn.execute(
        "select notification_id from duly.notifications where org_id = %s limit 1", [large]
    ).fetchall()
    [[message]] = conn.execute(
        """select 'evt_' || replace(job_id::text, '-', '') || '_' || event_seq
           from duly.webhook_deliveries where org_id = %s limit 1""",
        [large],
    ).fetchall()
    return Stock(large, dict(found.fetchall()), kind, endpoint, schedule, name, notification, message)  # type: ignore[arg-type]
