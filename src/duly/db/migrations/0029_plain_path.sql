-- The plain path: nearly all jobs are claimed once, succeed, and leave nothing but a result. Such a job has no state row.
-- Its claim is a row of `claims`, which is also its fence; its end is a row of `job_ends`, written once and never changed.
-- These rows are its events job.started and job.completed: the functions and views below show every event and every state,
-- wherever the fact is stored. A job that does anything else (a failure, a cancel, a partial result, progress, a lost
-- worker) leaves the plain path before: it gets the state row and the started event that it would have had from the start.

-- Lock all that is changed first: views before tables, and tables in the order of an enqueue, as others lock them. Locks
-- that are taken one by one, as they are needed, and those of readers and enqueues would wait for each other.
do $$
declare
    v_view text;
begin
    foreach v_view in array array['jobs', 'job_events', 'job_results', 'idempotency_keys', 'job_attempts'] loop
        execute format('alter view duly.%I set (security_invoker = true)', v_view);
    end loop;
end $$;
lock table duly.job_records, duly.event_log, duly.ready, duly.claims, duly.workers in access exclusive mode;

----------------------------------------------------------------------------------------------------------------------
-- 1  Tables
----------------------------------------------------------------------------------------------------------------------

-- Jobs that never had a state, event or queue row but their first: written by `write_new_jobs`.
alter table duly.ready add column fresh boolean not null default false;

-- A claim of the plain path. `low` and `high` are the first and the last of its jobs in the order of ids: a lookup by job
-- reads only the arrays of claims that may contain it. `left_jobs` are those that left the plain path and have a state.
alter table duly.claims
    add column plain boolean not null default false,
    add column low uuid,
    add column high uuid,
    add column commit_xid xid8,
    add column left_jobs uuid[] not null default '{}';

-- A job that is queued is younger than most claims: a lookup ends at once.
create index claims_plain on duly.claims (high) where plain;

-- Completions of the plain path. Insert-only: no role may update or delete; retention drops partitions.
create table duly.job_ends (
    org_id uuid not null,
    job_id uuid not null,
    worker_id uuid not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    -- The transactions of claim and completion, which order feeds.
    start_xid xid8 not null,
    end_xid xid8 not null default pg_current_xact_id(),
    -- A result that is not null has a row in `result_finals`, with a retention of its own.
    has_result boolean not null,
    primary key (org_id, job_id)
) partition by range (job_id);
select duly.isolate('duly.job_ends');
grant select on duly.job_ends to duly_tenant, duly_operator;
grant select, insert on duly.job_ends to duly_engine;

-- The events of the plain path in the order of commits: one row per transaction, org and event type. Feeds read it by
-- transaction, lists of completed jobs by org and time.
create table duly.event_batches (
    org_id uuid not null,
    occurred_at timestamptz not null,
    event_type text not null,
    event_seq integer not null,
    commit_xid xid8 not null default pg_current_xact_id(),
    job_count integer not null,
    job_ids uuid[] not null,
    primary key (org_id, occurred_at, event_type, commit_xid)
) partition by range (occurred_at);
create index event_batches_by_commit on duly.event_batches (commit_xid);
-- Job ids are mostly random: compressing them would cost time and save nothing.
alter table duly.event_batches alter column job_ids set storage external;
select duly.isolate('duly.event_batches');
grant select on duly.event_batches to duly_tenant, duly_operator;
grant select, insert on duly.event_batches to duly_engine;

-- Written when a job leaves the plain path: its started event is listed in `event_batches` already, so feeds skip it here.
alter table duly.event_log add column batched boolean not null default false;

insert into duly.partitioned_tables values
    ('job_ends', 'job_id', 'uuid7', 'month', 3, '', 'job_ends', 'finished_at', false),
    ('event_batches', 'occurred_at', 'time', 'month', 3, '', 'event_batches', 'occurred_at', false);
do $$
declare
    v_parent text;
begin
    foreach v_parent in array array['job_ends', 'event_batches'] loop
        execute format('create table duly.%I partition of duly.%I default', v_parent || '_default', v_parent);
        perform duly.lock_partition(v_parent || '_default');
    end loop;
end $$;
select duly.ensure_partitions();

----------------------------------------------------------------------------------------------------------------------
-- 2  Reading
--
-- `state_of` and `events_of` return the rows of a job as the tables of these names would have them. They are inlined.
----------------------------------------------------------------------------------------------------------------------

-- The claim of the plain path that holds a job now, if any. Claims have no org: tenants read them through this function,
-- for their own org only. Strict: a caller that knows the job has ended passes null, and nothing is read.
create function duly.find_plain_claim(p_org uuid, p_job uuid)
returns table (claim_id uuid, worker_id uuid, claimed_at timestamptz, commit_xid xid8)
    language sql stable strict security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
begin atomic
    select c.claim_id, c.worker_id, c.claimed_at, c.commit_xid
    from duly.claims c
    where c.plain and p_job between c.low and c.high and c.org_ids[array_position(c.job_ids, p_job)] = p_org
      and p_job <> all (c.left_jobs)
      and (current_setting('role') <> 'duly_tenant' or p_org = duly.current_org())
    limit 1;
end;
grant execute on function duly.find_plain_claim to duly_tenant, duly_engine, duly_operator;
-- As other functions that tenants may call, it runs as the engine, which only for the moment may own a new function.
grant create on schema duly to duly_engine;
alter function duly.find_plain_claim owner to duly_engine;
revoke create on schema duly from duly_engine;

-- The state of a job: none if it was never claimed.
create function duly.state_of(p_org uuid, p_job uuid) returns setof duly.job_states
    language sql stable
as $$
    select s.* from duly.job_states s where s.org_id = p_org and s.job_id = p_job
    union all
    select e.org_id, e.job_id, 'completed', 'succeeded', 1, 0, 3, 1, 0, 0, 100::real, e.started_at, e.worker_id,
           e.started_at, e.started_at, e.finished_at, e.finished_at, null::timestamptz, null::text, null::text,
           null::boolean, null::text, null::text, null::text, null::jsonb, null::jsonb, null::jsonb, 0::smallint
    from duly.job_ends e where e.org_id = p_org and e.job_id = p_job
    union all
    select p_org, p_job, 'running', 'pending', 1, 0, 2, 0, 0, 0, 0::real, c.claimed_at, c.worker_id,
           c.claimed_at, c.claimed_at, null::timestamptz, c.claimed_at, null::timestamptz, null::text, null::text,
           null::boolean, null::text, null::text, null::text, null::jsonb, null::jsonb, null::jsonb, 0::smallint
    from duly.find_plain_claim(p_org, p_job) c
    where not exists (select from duly.job_ends e where e.org_id = p_org and e.job_id = p_job)
$$;

-- The events of a job.
create function duly.events_of(p_org uuid, p_job uuid) returns setof duly.event_log
    language sql stable
as $$
    select l.* from duly.event_log l where l.org_id = p_org and l.job_id = p_job
    union all
    select e.org_id, e.job_id, 2, 'job.started', 'running', 1, e.started_at, 'worker', e.worker_id::text, null::jsonb,
           e.start_xid, true
    from duly.job_ends e where e.org_id = p_org and e.job_id = p_job
    union all
    select e.org_id, e.job_id, 3, 'job.completed', 'completed', 1, e.finished_at, 'worker', e.worker_id::text, null::jsonb,
           e.end_xid, true
    from duly.job_ends e where e.org_id = p_org and e.job_id = p_job
    union all
    select p_org, p_job, 2, 'job.started', 'running', 1, c.claimed_at, 'worker', c.worker_id::text, null::jsonb,
           c.commit_xid, true
    from duly.find_plain_claim(p_org, p_job) c
    where not exists (select from duly.job_ends e where e.org_id = p_org and e.job_id = p_job)
$$;
grant execute on function duly.state_of, duly.events_of to duly_tenant, duly_engine, duly_operator;

-- Every result: the final one of a plain completion without a value has no row of its own.
create view duly.all_results with (security_invoker = true) as
select org_id, job_id, result_kind, result_seq, schema_version, chunk_key, payload, payload_ref, summary, created_at
from duly.result_snapshots
union all
select org_id, job_id, 'final', 1, 1, null, null, null, null, finished_at from duly.job_ends where not has_result;
grant select on duly.all_results to duly_tenant, duly_engine, duly_operator;

-- Every job of a claim that is held now; `holder_id` is the worker that holds it, which may have claimed it again since.
create view duly.held_jobs with (security_invoker = true) as
select c.claim_id, c.worker_id, c.claimed_at, j.org_id, j.job_id, s.status, s.attempt_started_at, s.holder_id
from duly.claims c
cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
cross join lateral (
    select s.status, s.attempt_started_at, s.worker_id as holder_id from duly.job_states s
    where s.org_id = j.org_id and s.job_id = j.job_id and s.status in ('running', 'partial')
    union all
    select 'running', c.claimed_at, c.worker_id
    where c.plain and j.job_id <> all (c.left_jobs)
      and not exists (select from duly.job_ends e where e.org_id = j.org_id and e.job_id = j.job_id)
    limit 1
) s;
grant select on duly.held_jobs to duly_engine, duly_operator;

-- The events of the plain path one by one: found by transaction, or by org and time.
create view duly.batched_events with (security_invoker = true) as
select b.org_id, j.job_id, b.event_seq, b.event_type, b.occurred_at, b.commit_xid
from duly.event_batches b cross join lateral unnest(b.job_ids) j(job_id);
grant select on duly.batched_events to duly_tenant, duly_engine, duly_operator;

-- The keys of all events, by transaction.
create view duly.all_events with (security_invoker = true) as
select org_id, job_id, event_seq, event_type, occurred_at, commit_xid from duly.event_log where not batched
union all
select org_id, job_id, event_seq, event_type, occurred_at, commit_xid from duly.batched_events;
grant select on duly.all_events to duly_tenant, duly_engine, duly_operator;

-- The views of 0.9, with the same columns.

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
left join lateral (select x.* from duly.state_of(r.org_id, r.job_id) x limit 1) s on true;

create or replace view duly.job_events with (security_invoker = true) as
select
    e.job_id || ':' || e.event_seq as event_id,
    e.org_id, e.job_id, e.event_seq, e.event_type, e.status, e.attempt, e.occurred_at,
    e.actor_type, e.actor_id, coalesce(e.payload, '{}') as payload_json, e.commit_xid,
    r.job_type, r.project_id, r.request_id, r.correlation_id, split_part(r.traceparent, '-', 2) as trace_id, r.result_id
from duly.job_records r
cross join lateral duly.events_of(r.org_id, r.job_id) e;

create or replace view duly.job_results with (security_invoker = true) as
select
    r.result_id, s.org_id, s.job_id, s.result_kind, s.result_seq, s.schema_version, s.chunk_key,
    s.payload as result_payload, s.payload_ref as result_payload_ref,
    coalesce(s.summary, '{}') as summary_json, s.created_at
from duly.all_results s
join duly.job_records r using (org_id, job_id);

create or replace view duly.idempotency_keys with (security_invoker = true) as
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
left join lateral (select x.* from duly.state_of(l.org_id, l.job_id) x limit 1) s on true
left join duly.job_records r on r.org_id = l.org_id and r.job_id = l.job_id;

create or replace view duly.job_attempts with (security_invoker = true) as
select
    b.org_id, b.job_id, b.attempt, b.actor_id as worker_id, b.occurred_at as started_at,
    e.occurred_at as ended_at, e.event_type as ended_by, coalesce(e.payload, '{}') as detail
from duly.job_records r
cross join lateral duly.events_of(r.org_id, r.job_id) b
left join lateral (
    select x.occurred_at, x.event_type, x.payload
    from duly.events_of(b.org_id, b.job_id) x
    where x.attempt = b.attempt and x.event_seq > b.event_seq
      and x.event_type not in ('job.progressed', 'job.partial', 'job.cancel_requested')
    order by x.event_seq limit 1
) e on true
where b.event_type = 'job.started';

----------------------------------------------------------------------------------------------------------------------
-- 3  Leaving the plain path
----------------------------------------------------------------------------------------------------------------------

-- Give jobs of plain claims the state and the started event that they would have had from the start; those that ended, or
-- left before, stay as they are. Nothing is written for a claim that is gone: its jobs were taken over.
-- Locks: the claims in the order of their ids, before anything else of their jobs is written. The second statement has a
-- snapshot of its own, so that it sees what was written while the first one waited.
create function duly.leave_plain_path(p_claims uuid[], p_orgs uuid[], p_jobs uuid[]) returns void
    language plpgsql
as $$
begin
    perform from duly.claims c where c.claim_id = any (p_claims) and c.plain order by c.claim_id for update;
    with job as materialized (
        select c.claim_id, c.worker_id, c.claimed_at, c.commit_xid, j.org_id, j.job_id
        from unnest(p_claims, p_orgs, p_jobs) j(claim_id, org_id, job_id)
        join duly.claims c on c.claim_id = j.claim_id and c.plain and j.job_id <> all (c.left_jobs)
        where exists (select from duly.job_records r where r.org_id = j.org_id and r.job_id = j.job_id)
          and not exists (select from duly.job_ends e where e.org_id = j.org_id and e.job_id = j.job_id)
    ), state as (
        insert into duly.job_states (
            org_id, job_id, status, outcome, attempt, event_seq, run_at, worker_id, attempt_started_at, started_at,
            updated_at)
        select j.org_id, j.job_id, 'running', 'pending', 1, 2, j.claimed_at, j.worker_id, j.claimed_at, j.claimed_at,
               j.claimed_at
        from job j
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, commit_xid, batched)
        select j.org_id, j.job_id, 2, 'job.started', 'running', 1, j.claimed_at, 'worker', j.worker_id::text, j.commit_xid,
               true
        from job j
    )
    update duly.claims c set left_jobs = c.left_jobs || l.job_ids
    from (select j.claim_id, array_agg(j.job_id) as job_ids from job j group by j.claim_id) l
    where c.claim_id = l.claim_id;
end $$;

-- The same for a job whose claim the caller does not know.
create function duly.leave_plain_path(p_org uuid, p_job uuid) returns void
    language plpgsql
as $$
declare
    v_claim uuid := (select c.claim_id from duly.find_plain_claim(p_org, p_job) c);
begin
    if v_claim is not null then
        perform duly.leave_plain_path(array[v_claim], array[p_org], array[p_job]);
    end if;
end $$;
grant execute on function duly.leave_plain_path(uuid[], uuid[], uuid[]), duly.leave_plain_path(uuid, uuid) to duly_engine;

-- A running job of the plain path gets its state before the request is stored in it.
grant create on schema duly to duly_engine;
set local role duly_engine;
create or replace function duly.cancel(
    p_org uuid, p_job uuid, p_by text, p_reason text, p_actor_type text, p_actor_id text
) returns text
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_status text;
    v_asked boolean;
begin
    perform duly.check_session(p_org);
    for i in 1..10 loop
        begin
            if duly.cancel_waiting(p_org, p_job, p_by, p_reason, p_actor_type, p_actor_id) then
                return 'canceled';
            end if;
            perform duly.leave_plain_path(p_org, p_job);
            if duly.request_cancel(p_org, p_job, p_by, p_reason, p_actor_type, p_actor_id) then
                return 'requested';
            end if;
            select j.status, j.cancel_requested_at is not null into v_status, v_asked
            from duly.jobs j where j.org_id = p_org and j.job_id = p_job;
            case
                when v_status is null or v_status = 'canceled' then return v_status;
                when v_status in ('completed', 'failed') then return 'finished';
                when v_asked and v_status in ('running', 'partial') then return 'requested';
                else raise sqlstate 'DU001';
            end case;
        exception when sqlstate 'DU001' then
            null;
        end;
    end loop;
    raise serialization_failure using message = 'the job kept moving; try again';
end $$;
set local role duly_owner;
revoke create on schema duly from duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 4  Replays and retention read both paths
----------------------------------------------------------------------------------------------------------------------

create or replace function duly.next_replay(p_org uuid, p_job uuid, out idempotency_key text, out active_job_id uuid)
    language plpgsql stable
as $$
begin
    for n in 1..2147483647 loop
        idempotency_key := format('replay:%s:%s', p_job, n);
        select case when r.replay_of = p_job and s.finished_at is null then r.job_id end into active_job_id
        from duly.ledger l
        left join duly.job_records r on r.org_id = l.org_id and r.job_id = l.job_id
        left join lateral (select x.finished_at from duly.state_of(l.org_id, l.job_id) x limit 1) s on true
        where l.org_id = p_org and l.idempotency_key = next_replay.idempotency_key and l.expires_at > duly.now();
        exit when not found or active_job_id is not null;
    end loop;
end $$;

create or replace function duly.plan_replays(p_org uuid, p_jobs json) returns setof duly.replay_plan
    language sql stable
begin atomic
    select a.ord, a.job_id,
           case when k.active_job_id is not null then 'found'
                when h.job_id is not null or a.turn > 1 then 'held'
                else 'created' end,
           coalesce(k.active_job_id, h.job_id), k.idempotency_key, a.delay, a.payload, a.payload_ref, a.payload_hash
    from (
        select j.*, r.job_type, r.run_identity_hash, case when r.run_identity_hash is not null then
                   row_number() over (partition by r.job_type, r.run_identity_hash order by j.ord) end as turn
        from rows from (json_to_recordset(p_jobs) as (
            job_id uuid, delay double precision, payload jsonb, payload_ref text, payload_hash text
        )) with ordinality as j(job_id, delay, payload, payload_ref, payload_hash, ord)
        join duly.job_records r on r.org_id = p_org and r.job_id = j.job_id
        cross join lateral (
            select from duly.state_of(p_org, j.job_id) x where x.finished_at is not null limit 1) s
    ) a
    cross join lateral duly.next_replay(p_org, a.job_id) k
    left join duly.active_runs h
        on h.org_id = p_org and h.job_type = a.job_type and h.run_identity_hash = a.run_identity_hash
    order by a.ord;
end;

-- A running job of the plain path has no state: its claim keeps its rows.
grant create on schema duly to duly_engine;
set local role duly_engine;
create or replace view duly.kept_back as
select org_id, job_id, true as whole, 'is ready' as why from duly.ready
union all
select org_id, job_id, true, 'waits for its time' from duly.scheduled
union all
select org_id, job_id, true, 'is ' || status from duly.job_states where finished_at is null
union all
select j.org_id, j.job_id, true, 'is running'
from duly.claims c cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
where c.plain and j.job_id <> all (c.left_jobs)
  and not exists (select from duly.job_ends e where e.org_id = j.org_id and e.job_id = j.job_id)
union all
select org_id, job_id, false, 'answers a live idempotency key' from duly.ledger
where final_status is null and expires_at > duly.now();
set local role duly_owner;
revoke create on schema duly from duly_engine;

create or replace function duly.why_kept(
    t duly.partitioned_tables, p_partition text, p_from timestamptz, p_to timestamptz, p_cutoff timestamptz
) returns text
    language plpgsql
as $$
declare
    v_why text;
    v_young boolean;
begin
    if t.key_kind = 'uuid7' then
        select format('job %s %s', k.job_id, k.why) into v_why from duly.kept_back k
        where k.job_id >= duly.uuid7_floor(p_from) and k.job_id < duly.uuid7_floor(p_to)
          and (k.whole or t.parent = 'job_records')
        limit 1;
    end if;
    -- A record without its state would look like a job that waits: the state goes last.
    if t.parent in ('job_states', 'job_ends') and exists (
        select from duly.partitions p where p.parent = 'job_records' and p.starts_at < p_to and p.ends_at > p_from
    ) then
        v_why := coalesce(v_why, 'its job_records are still there');
    end if;
    if v_why is null and t.parent = 'job_records' and to_regclass('duly.' || replace(p_partition, t.parent, 'job_ends')) is not null then
        execute format('select exists (select from duly.%I where finished_at >= $1)',
            replace(p_partition, t.parent, 'job_ends'))
        into v_young using p_cutoff;
        v_why := case when v_young then format('has rows with finished_at after %s', p_cutoff) end;
    end if;
    if v_why is null then
        execute format('select exists (select from duly.%I where %I >= $1)',
            replace(p_partition, t.parent, t.dated_in), t.dated_by)
        into v_young using p_cutoff;
        v_why := case when v_young then format('has rows with %s after %s', t.dated_by, p_cutoff) end;
    end if;
    return v_why;
end $$;

create or replace function duly.drop_partition(t duly.partitioned_tables, p_partition text) returns void
    language plpgsql
as $$
begin
    if t.names_blobs then
        -- A reference that a caller made up may not name what is another org's.
        execute format($sql$
            insert into duly.released_blobs (blob_ref)
            select distinct payload_ref from duly.%I where payload_ref like 'blob:' || org_id || '/%%'
            on conflict (blob_ref) do update set released_at = excluded.released_at
        $sql$, p_partition);
    end if;
    if t.parent in ('event_log', 'event_batches') then
        execute format($sql$
            insert into duly.event_drops (dropped_through)
            select commit_xid from duly.%I order by commit_xid desc limit 1
        $sql$, p_partition);
    end if;
    -- Should the caller hang before the commit, everybody would wait for it.
    perform set_config('idle_in_transaction_session_timeout', '5s', true);
    execute format('lock table only duly.%I in access exclusive mode', t.parent);
    execute format('lock table duly.%I, duly.%I in access exclusive mode nowait', p_partition, t.parent || '_default');
    execute format('drop table duly.%I', p_partition);
end $$;

create or replace function duly.delete_strays(
    t duly.partitioned_tables, p_before timestamptz, p_cutoff timestamptz
) returns integer
    language plpgsql
as $$
declare
    v_bound text := duly.partition_bound(t.key_kind, p_before);
    v_free text := '';
    v_deleted integer;
begin
    if t.key_kind = 'uuid7' then
        v_free := format($sql$
            and not exists (select from duly.%I s where s.org_id = d.org_id and s.job_id = d.job_id and s.%I >= $1)
            and not exists (
                select from duly.kept_back k
                where k.org_id = d.org_id and k.job_id = d.job_id and k.job_id < %s and (k.whole or %L))
            $sql$, t.dated_in || '_default', t.dated_by, v_bound, t.parent = 'job_records');
    end if;
    if t.parent = 'job_records' then
        v_free := v_free || $sql$
            and not exists (
                select from duly.job_ends_default e
                where e.org_id = d.org_id and e.job_id = d.job_id and e.finished_at >= $1)
            $sql$;
    end if;
    if t.parent in ('job_states', 'job_ends') then
        v_free := v_free || $sql$
            and not exists (select from duly.job_records_default r where r.org_id = d.org_id and r.job_id = d.job_id)
            $sql$;
    end if;
    execute format($sql$
        with old as materialized (
            select d.ctid from duly.%1$I d where d.%2$I < %3$s %4$s limit 500
        ), gone as (
            delete from duly.%1$I d using old o where d.ctid = o.ctid
            returning d.org_id, %5$s as blob_ref, %6$s as commit_xid
        ), released as (
            insert into duly.released_blobs (blob_ref)
            select distinct g.blob_ref from gone g where g.blob_ref like 'blob:' || g.org_id || '/%%'
            on conflict (blob_ref) do update set released_at = excluded.released_at
        ), noted as (
            insert into duly.event_drops (dropped_through)
            select g.commit_xid from gone g where g.commit_xid is not null order by g.commit_xid desc limit 1
        )
        select count(*) from gone
        $sql$, t.parent || '_default', t.key_column, v_bound, v_free,
            case when t.names_blobs then 'd.payload_ref' else 'null::text' end,
            case when t.parent in ('event_log', 'event_batches') then 'd.commit_xid' else 'null::xid8' end)
    into v_deleted using p_cutoff;
    return v_deleted;
end $$;

----------------------------------------------------------------------------------------------------------------------
-- 5  Enqueueing marks the jobs that may take the plain path
----------------------------------------------------------------------------------------------------------------------

create or replace function duly.write_new_jobs(
    p_org uuid, p_policies duly.policy_read[], p_heads duly.job_head[], p_head_of integer[], p_job_ids uuid[],
    p_result_ids uuid[], p_payloads json, p_keys text[], p_now timestamptz
) returns void
    -- A batch meets few heads: a hash of them, whatever size a cached plan was made for.
    language plpgsql set plan_cache_mode = force_generic_plan
as $$
begin
    with head as materialized (
        select h.n::integer - 1 as number, h.job_type, h.actor_type, h.actor_id, h.request_id, h.correlation_id, h.project_id,
               h.traceparent, h.parent_id, p.policy, p.policy_hash, p.queue, p.priority, p.category, p.max_attempts,
               p_now + p.ledger_ttl as expires_at, p.queue || coalesce('#' || l.job_type, '') as lane,
               concat_ws(':', h.job_type, p_org, h.project_id, '') as key_prefix
        from unnest(p_heads) with ordinality h(
            job_type, policy_number, actor_type, actor_id, request_id, correlation_id, project_id, traceparent, parent_id, n)
        cross join lateral (select (p_policies[h.policy_number + 1]).*) p
        left join duly.lanes l on l.job_type = h.job_type
    ), input as materialized (
        select h.*, j.job_id, j.result_id, t.payload, h.key_prefix || t.payload_hash as derived_key, j.idempotency_key,
               t.payload_hash
        from rows from (
            unnest(p_job_ids), unnest(p_result_ids), unnest(p_head_of), unnest(p_keys), json_array_elements(p_payloads)
        ) as j(job_id, result_id, head, idempotency_key, payload)
        join head h on h.number = coalesce(j.head, 0)
        cross join lateral (select j.payload::jsonb as payload) b
        cross join lateral (
            -- Most payloads hold no instant and are their own canonical form: spare them the call.
            select b.payload, case
                when b.payload::text like '%T__:__%' then duly.stable_hash(duly.canonical(b.payload))
                else encode(sha256(convert_to(b.payload::text, 'UTF8')), 'hex') end as payload_hash
        ) t
    ), seen as (
        insert into duly.ledger (org_id, idempotency_key, job_id, first_seen_at, last_seen_at, expires_at)
        select p_org, coalesce(i.idempotency_key, i.derived_key), i.job_id, p_now, p_now, i.expires_at
        from input i order by coalesce(i.idempotency_key, i.derived_key) collate "C"
        returning 1
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
        select p_org, i.job_id, 1, 'job.queued', 'queued', 0, p_now, i.actor_type, i.actor_id from input i
    ), runnable as (
        insert into duly.ready (queue, org_id, rank, job_id, fresh)
        select i.lane, p_org, -i.priority, i.job_id, true from input i
    )
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, project_id, actor_type, actor_id,
        request_id, correlation_id, traceparent, idempotency_key, payload, payload_hash, policy, policy_hash, run_at,
        parent_id, created_at)
    select p_org, i.job_id, i.result_id, i.job_type, i.category, i.queue, i.priority, i.max_attempts, i.project_id,
           i.actor_type, i.actor_id, i.request_id, i.correlation_id, i.traceparent,
           coalesce(i.idempotency_key, i.derived_key), i.payload, i.payload_hash, i.policy, i.policy_hash, p_now,
           i.parent_id, p_now
    from input i where (select count(*) from seen) > 0;
end $$;

-- An ended job with a run identity frees it, and a replay has a second event: these have a state.
create or replace function duly.write_jobs(
    p_org uuid, p_policies duly.policy_read[], p_jobs duly.job_read[], p_runs duly.active_runs[], p_now timestamptz
) returns duly.job_written[]
    -- It joins the batch with itself: thousands of rows, whatever size a cached plan was made for.
    language plpgsql set enable_nestloop = off set plan_cache_mode = force_generic_plan
as $$
declare
    v_written duly.job_written[];
begin
    with policies as materialized (
        select p.*, p.n - 1 as number
        from unnest(p_policies) with ordinality p(
            policy, policy_hash, queue, priority, category, max_attempts, ledger_ttl, n)
    ), input as materialized (
        -- Only what decides who is first: the rest of a job is looked up when it is written.
        select j.ord, j.job_id, j.idempotency_key, j.policy, coalesce(r.job_id, j.job_id) as runs_as,
               row_number() over (partition by j.idempotency_key collate "C" order by j.ord) as turn
        from unnest(p_jobs) j
        left join unnest(p_runs) r using (job_type, run_identity_hash)
    ), seen as (
        insert into duly.ledger as l (org_id, idempotency_key, job_id, first_seen_at, last_seen_at, expires_at)
        select p_org, i.idempotency_key, i.runs_as, p_now, p_now, p_now + p.ledger_ttl
        from input i join policies p on p.number = i.policy
        where i.turn = 1 order by i.idempotency_key collate "C"
        on conflict (org_id, idempotency_key) do update set
            last_seen_at = p_now,
            job_id = case when l.expires_at > p_now then l.job_id else excluded.job_id end,
            first_seen_at = case when l.expires_at > p_now then l.first_seen_at else p_now end,
            expires_at = case when l.expires_at > p_now then l.expires_at else excluded.expires_at end,
            final_status = case when l.expires_at > p_now then l.final_status end,
            result_ref = case when l.expires_at > p_now then l.result_ref end,
            error_ref = case when l.expires_at > p_now then l.error_ref end
        returning l.idempotency_key, l.job_id
    ), record as (
        insert into duly.job_records (
            org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, project_id, subject_id,
            actor_type, actor_id, request_id, correlation_id, traceparent, idempotency_key, run_identity_hash,
            payload, payload_ref, payload_hash, policy, policy_hash, metadata, scheduled_for, run_at, replay_of, parent_id,
            created_at)
        select p_org, j.job_id, j.result_id, j.job_type, p.category, p.queue, p.priority, p.max_attempts, j.project_id,
               j.subject_id, j.actor_type, j.actor_id, j.request_id, j.correlation_id, j.traceparent, j.idempotency_key,
               j.run_identity_hash, j.payload, j.payload_ref, j.payload_hash, p.policy, p.policy_hash, j.metadata,
               j.scheduled_for, coalesce(j.scheduled_for, p_now), j.replay_of, j.parent_id, p_now
        from unnest(p_jobs) j
        join policies p on p.number = j.policy
        join seen s on s.job_id = j.job_id and s.idempotency_key = j.idempotency_key
        -- A caller who lost our answer may send the same job again.
        on conflict (org_id, job_id) do nothing
        returning job_id, job_type, queue, priority, run_at, actor_type, actor_id,
            run_identity_hash is null and replay_of is null as plain
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
        select p_org, r.job_id, 1, 'job.queued', 'queued', 0, p_now, r.actor_type, r.actor_id from record r
    ), runnable as (
        insert into duly.ready (queue, org_id, rank, job_id, fresh)
        select r.queue || coalesce('#' || l.job_type, ''), p_org, -r.priority, r.job_id, r.plain
        from record r left join duly.lanes l using (job_type) where r.run_at <= p_now
    ), later as (
        insert into duly.scheduled (run_at, org_id, job_id, queue, rank)
        select r.run_at, p_org, r.job_id, r.queue, -r.priority from record r where r.run_at > p_now
    )
    select array_agg(row(i.ord, s.job_id, r.job_id is not null and s.job_id = i.job_id)::duly.job_written order by i.ord)
    into v_written
    from input i
    join seen s on s.idempotency_key = i.idempotency_key
    left join record r on r.job_id = i.job_id;
    return v_written;
end $$;

----------------------------------------------------------------------------------------------------------------------
-- 6  The switch
--
-- Workers of 0.9 know nothing of the plain path: they would take its running jobs for lost ones. It is used once no such
-- worker has been alive for ten minutes; from then on they cannot register.
----------------------------------------------------------------------------------------------------------------------

alter table duly.workers add column layout smallint not null default 1;

create table duly.layouts (
    layout smallint primary key,
    enabled_at timestamptz not null default duly.now()
);
grant select, insert on duly.layouts to duly_engine;
grant select on duly.layouts to duly_operator;

-- Returns whether it is used. The lock excludes a worker that registers at the same moment.
create function duly.enable_plain_path() returns boolean
    language plpgsql
as $$
begin
    if exists (select from duly.layouts l where l.layout = 2) then
        return true;
    end if;
    perform pg_advisory_xact_lock(4846231972);
    insert into duly.layouts (layout)
    select 2
    where not exists (
        select from duly.workers w
        where w.layout < 2 and greatest(w.heartbeat_at, w.started_at, w.stopped_at, w.lost_at) > duly.now() - interval '10 minutes')
    on conflict do nothing;
    return found;
end $$;
grant execute on function duly.enable_plain_path to duly_engine;

create function duly.check_worker_layout() returns trigger
    language plpgsql
as $$
begin
    perform pg_advisory_xact_lock_shared(4846231972);
    if exists (select from duly.layouts l where l.layout > new.layout) then
        perform duly.refuse('DU422', 'version', format('workers of release %s cannot work on this database any more', new.version),
            'upgrade the worker');
    end if;
    return new;
end $$;
create trigger workers_layout before insert on duly.workers for each row when (new.layout < 2)
    execute function duly.check_worker_layout();

-- At once in a database without workers.
select duly.enable_plain_path();
