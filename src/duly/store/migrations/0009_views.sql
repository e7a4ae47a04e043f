-- One view per entity: every field under its name, whatever the physical layout.
-- They run with the rights of who asks, so that row level security holds behind them.

create view duly.jobs with (security_invoker = true) as
select
    r.org_id, r.job_id, r.result_id, r.job_type, r.category, r.queue, r.priority,
    case when r.priority >= 50 then 'expedite' else 'default' end as priority_class,
    r.project_id, r.subject_id, r.actor_type, r.actor_id,
    case when r.actor_type = 'user' then r.actor_id end as requested_by_user_id,
    case when r.actor_type = 'api_key' then r.actor_id end as api_key_id,
    r.request_id, r.correlation_id, r.traceparent, split_part(r.traceparent, '-', 2) as trace_id,
    r.idempotency_key, r.run_identity_hash,
    r.payload, r.payload_hash as request_payload_hash, r.payload_ref as request_payload_ref,
    r.policy, r.metadata, r.scheduled_for, r.replay_of, r.parent_id,
    coalesce(s.status, 'queued') as status,
    coalesce(s.outcome, 'pending') as outcome,
    coalesce(s.attempt - s.returned, 0) as attempt,
    coalesce(s.attempt - s.returned, 0) as attempts,
    coalesce(s.attempt, 0) as fence,
    r.max_attempts,
    coalesce(s.progress_percent, 0) as progress_percent,
    coalesce(s.partial_count, 0) as partial_count,
    coalesce(s.error_count, 0) as error_count,
    coalesce(s.event_seq, 1) as event_seq,
    coalesce(s.result_seq, 0) as result_seq,
    coalesce(s.run_at, r.run_at) as run_at,
    r.created_at, r.created_at as queued_at,
    s.started_at, s.attempt_started_at, s.worker_id,
    s.finished_at, s.finished_at as completed_at,
    coalesce(s.updated_at, r.created_at) as updated_at,
    s.cancel_requested_at,
    case when s.status = 'canceled' then s.finished_at end as canceled_at,
    s.canceled_by, s.cancel_reason,
    case when s.status = 'failed' then s.finished_at end as failed_at,
    s.retryable, s.error_code, s.error_class, s.error_message,
    coalesce(s.summary_counts, '{}') as summary_counts,
    coalesce(s.failure_summary, '[]') as failure_summary,
    coalesce(s.context, '{}') as context,
    (select f.payload from duly.result_snapshots f
     where f.org_id = r.org_id and f.job_id = r.job_id and f.result_kind = 'final') as result
from duly.job_records r
left join duly.job_states s using (org_id, job_id);

create view duly.job_events with (security_invoker = true) as
select
    e.job_id || ':' || e.event_seq as event_id,
    e.org_id, e.job_id, e.event_seq, e.event_type, e.status, e.attempt, e.occurred_at,
    e.actor_type, e.actor_id, coalesce(e.payload, '{}') as payload_json, e.commit_xid,
    r.job_type, r.project_id, r.request_id, r.correlation_id, split_part(r.traceparent, '-', 2) as trace_id, r.result_id
from duly.event_log e
join duly.job_records r using (org_id, job_id);

create view duly.job_results with (security_invoker = true) as
select
    r.result_id, s.org_id, s.job_id, s.result_kind, s.result_seq, s.schema_version, s.chunk_key,
    s.payload as result_payload, s.payload_ref as result_payload_ref,
    coalesce(s.summary, '{}') as summary_json, s.created_at
from duly.result_snapshots s
join duly.job_records r using (org_id, job_id);

create view duly.idempotency_keys with (security_invoker = true) as
select
    l.org_id, l.idempotency_key, l.job_id, l.first_seen_at, l.last_seen_at, l.expires_at,
    coalesce(l.final_status, case
        when s.status in ('running', 'partial') then 'running'
        when s.status = 'completed' then 'succeeded'
        when s.outcome = 'dead' then 'dead'
        when s.status in ('failed', 'canceled') then 'failed'
        else 'pending' end) as status,
    coalesce(l.result_ref, case when s.status = 'completed' then r.result_id::text end) as result_ref,
    coalesce(l.error_ref, case when s.status in ('failed', 'canceled') then coalesce(s.error_code, 'run.canceled') end)
        as error_ref
from duly.ledger l
left join duly.job_states s using (org_id, job_id)
left join duly.job_records r using (org_id, job_id);

-- An attempt is what lies between its start and the next event that leaves the worker.
create view duly.job_attempts with (security_invoker = true) as
select
    b.org_id, b.job_id, b.attempt, b.actor_id as worker_id, b.occurred_at as started_at,
    e.occurred_at as ended_at, e.event_type as ended_by, coalesce(e.payload, '{}') as detail
from duly.event_log b
left join lateral (
    select x.occurred_at, x.event_type, x.payload
    from duly.event_log x
    where x.org_id = b.org_id and x.job_id = b.job_id and x.attempt = b.attempt and x.event_seq > b.event_seq
      and x.event_type not in ('job.progressed', 'job.partial', 'job.cancel_requested')
    order by x.event_seq limit 1
) e on true
where b.event_type = 'job.started';

grant select on duly.jobs, duly.job_events, duly.job_results, duly.idempotency_keys, duly.job_attempts
    to duly_tenant, duly_engine, duly_operator;
