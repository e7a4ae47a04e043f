-- What it takes to tell the truth: callbacks that are owed to failed jobs, and how far a worker's clock is off.

-- A job type may ask to be told of its failures. The debt is made with the failure and paid with the callback's own
-- writes, each in one transaction: whoever ends the job, the callback happens at most once.
create table duly.bridge_debts (
    org_id uuid not null,
    job_id uuid not null,
    job_type text not null,
    owed_at timestamptz not null,
    due_at timestamptz not null,
    tries integer not null default 0,
    last_error text,
    primary key (org_id, job_id)
);
create index bridge_debts_due on duly.bridge_debts (due_at);
select duly.isolate('duly.bridge_debts');
grant select on duly.bridge_debts to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.bridge_debts to duly_engine;

-- Who waited behind a pause has waited since its end.
alter table duly.queues add column resumed_at timestamptz;
alter table duly.gates add column resumed_at timestamptz;

-- After how long a job of this policy is stale; policies of other versions may say less, or nonsense.
create function duly.stale_after(p_policy jsonb, p_name text, p_usual double precision) returns interval
    language sql immutable parallel safe
    return make_interval(secs => case jsonb_typeof(p_policy -> 'lifecycle' -> p_name)
        when 'number' then least(greatest((p_policy -> 'lifecycle' ->> p_name)::double precision, 0), 1e9)
        else p_usual end);

-- Whether jobs of this policy are judged, and put right, at all.
create function duly.is_judged(p_policy jsonb) returns boolean
    language sql immutable parallel safe
    return not (p_policy -> 'lifecycle' @> '{"covered": false}' or p_policy -> 'lifecycle' @> '{"supports_reconciliation": false}')
        is true;

-- Whether somebody keeps such jobs from being claimed on purpose.
create function duly.is_paused(p_org uuid, p_queue text, p_job_type text) returns boolean
    language sql stable parallel safe
    return exists (select from duly.queues q where q.queue = p_queue and q.paused_at is not null)
        or exists (select from duly.gates g where g.org_id = p_org and g.job_type in ('', p_job_type) and g.paused_at is not null)
        or exists (select from duly.gates g where g.org_id = '00000000-0000-0000-0000-000000000000'
                     and g.job_type = p_job_type and g.paused_at is not null);

-- When the last such pause ended.
create function duly.resumed_at(p_org uuid, p_queue text, p_job_type text) returns timestamptz
    language sql stable parallel safe
    return greatest(
        (select q.resumed_at from duly.queues q where q.queue = p_queue),
        (select max(g.resumed_at) from duly.gates g where g.org_id = p_org and g.job_type in ('', p_job_type)),
        (select g.resumed_at from duly.gates g
         where g.org_id = '00000000-0000-0000-0000-000000000000' and g.job_type = p_job_type));
grant execute on function duly.stale_after, duly.is_judged, duly.is_paused, duly.resumed_at to duly_engine;

-- As in 0009, with the records of what was put right.
create or replace view duly.jobs with (security_invoker = true) as
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
     where f.org_id = r.org_id and f.job_id = r.job_id and f.result_kind = 'final') as result,
    coalesce(s.context -> 'reconciliations', '[]') as reconciliations
from duly.job_records r
left join duly.job_states s using (org_id, job_id);

-- Every healing of a job, one row each.
create view duly.job_reconciliations with (security_invoker = true) as
select
    s.org_id, s.job_id, r.n as reconciliation_seq, (r.record ->> 'at')::timestamptz as reconciled_at,
    r.record ->> 'kind' as reconciliation_kind, r.record ->> 'reason_code' as reason_code,
    r.record ->> 'message' as reason_message, r.record -> 'evidence' as evidence, r.record ->> 'source' as source,
    r.record ->> 'status' as status
from duly.job_states s
cross join lateral jsonb_array_elements(s.context -> 'reconciliations') with ordinality as r(record, n);
grant select on duly.job_reconciliations to duly_tenant, duly_engine, duly_operator;

-- As in 0011, but a time that has passed is refused for new jobs only.
-- The next function belongs to the engine, and only its owner may replace it.
grant create on schema duly to duly_engine;
set local role duly_engine;

-- The one door: many jobs of one org. Duplicates answer with the job that was first.
-- The memory keeps the sorts of a batch of thousands off the disk.
create or replace function duly.enqueue_jobs(p_org uuid, p_policies jsonb, p_jobs json, p_wake boolean default true)
returns setof duly.job_written
    language plpgsql security definer set search_path = pg_catalog, pg_temp set work_mem = '32MB'
    set enable_hashjoin = on set enable_mergejoin = on
as $$
declare
    v_now timestamptz := duly.now();
    v_jobs duly.job_input[];
    v_runs duly.active_runs[];
    v_written duly.job_written[];
begin
    perform duly.check_org(p_org);
    perform duly.check_policies(p_policies);
    v_jobs := array(select j from duly.parse_jobs(p_org, p_policies, p_jobs, v_now) j);
    if exists (select from unnest(v_jobs) j where j.run_identity_hash is not null) then
        v_runs := array(select r from duly.reserve_runs(p_org, v_jobs, v_now) r);
        v_written := array(select w from duly.write_jobs(p_org, v_jobs, v_runs, v_now) w);
        perform duly.settle_runs(p_org, v_jobs, v_written);
    else
        v_written := array(select w from duly.write_jobs(p_org, v_jobs, null, v_now) w);
    end if;
    -- Of new jobs only: who lost the answer may ask for the same job again when its time has come.
    if exists (
        select from unnest(v_jobs) j
        where (j.scheduled_for < v_now - interval '60 seconds' or not isfinite(j.scheduled_for))
          and exists (select from unnest(v_written) w where w.ord = j.ord and w.created)
    ) then
        perform duly.refuse('DU422', 'scheduled_for', 'lies in the past', 'give a time to come; 60 s of drift are tolerated');
    end if;
    perform duly.check_waiting(p_org, v_written);
    return query select * from unnest(v_written);
    if p_wake then
        perform pg_notify('duly_ready', '');
    end if;
end $$;

set local role duly_owner;
revoke create on schema duly from duly_engine;

-- The last of this migration, because heartbeats wait for it.
-- The worker's clock against the database's, as its last heartbeat told. Nothing depends on it but the warning.
alter table duly.workers add column clock_offset interval;
