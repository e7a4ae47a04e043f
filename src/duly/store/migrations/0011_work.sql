-- What workers need: lanes in every way into and out of the queue, wake-ups for cancels, workers that can be
-- declared lost, and budgets that keep retries from becoming a storm.

-- A worker that was silent for too long is declared lost; should it wake up, it finds out here.
alter table duly.workers add column lost_at timestamptz;
create index workers_beating on duly.workers (heartbeat_at) where stopped_at is null and lost_at is null;

-- Retries of an org against one dependency, paced by the time up to which they are spent.
create table duly.retry_budgets (
    org_id uuid not null,
    dependency text not null check (dependency <> ''),
    spent_until timestamptz not null,
    primary key (org_id, dependency)
) with (fillfactor = 50);
select duly.isolate('duly.retry_budgets');
grant select on duly.retry_budgets to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.retry_budgets to duly_engine;

-- Take a waiting job out of the queue or lane it is in: nothing if a worker was faster. Locks: the queue row.
create or replace function duly.take_out(p_org uuid, p_job uuid)
returns table (org_id uuid, job_id uuid, job_type text, run_identity_hash text, due_at timestamptz)
    language sql
begin atomic
    with job as (
        select r.*, coalesce(s.run_at, r.run_at) as due_at
        from duly.job_records r left join duly.job_states s using (org_id, job_id)
        where r.org_id = p_org and r.job_id = p_job
    ), from_ready as (
        delete from duly.ready q using job j
        where q.queue in (j.queue, j.queue || '#' || j.job_type)
          and q.org_id = j.org_id and q.rank = -j.priority and q.job_id = j.job_id
        returning q.job_id
    ), from_scheduled as (
        delete from duly.scheduled q using job j
        where q.run_at = j.due_at and q.org_id = j.org_id and q.job_id = j.job_id
        returning q.job_id
    )
    select j.org_id, j.job_id, j.job_type, j.run_identity_hash, j.due_at
    from job j
    where exists (select from from_ready) or exists (select from from_scheduled);
end;

-- As in 0008, and the workers are told: they listen, and look again when they hear of it.
create or replace function duly.request_cancel(
    p_org uuid, p_job uuid, p_by text, p_reason text, p_actor_type text, p_actor_id text
) returns boolean
    language sql
begin atomic
    with asked as (
        update duly.job_states s set
            cancel_requested_at = duly.now(), canceled_by = p_by, cancel_reason = p_reason,
            event_seq = s.event_seq + 1, updated_at = duly.now()
        where s.org_id = p_org and s.job_id = p_job and s.status in ('running', 'partial')
          and s.cancel_requested_at is null
        returning s.*
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
        select a.org_id, a.job_id, a.event_seq, 'job.cancel_requested', a.status, a.attempt, duly.now(),
               p_actor_type, p_actor_id, jsonb_build_object('canceled_by', p_by, 'cancel_reason', p_reason)
        from asked a
    ), told as (
        select pg_notify('duly_cancel', '') from asked
    )
    select exists (select from asked) and (select count(*) from told) >= 0;
end;

-- Write the jobs. Locks: ledger keys in their order, so that two batches cannot deadlock.
-- `p_runs` says which identities belong to which run; a job whose run is another's is not written.
create or replace function duly.write_jobs(p_org uuid, p_jobs duly.job_input[], p_runs duly.active_runs[], p_now timestamptz)
returns setof duly.job_written
    -- It joins the batch with itself: thousands against thousands, whatever a cached plan was made for.
    language sql set enable_nestloop = off
begin atomic
    with input as materialized (
        select j.*, coalesce(r.job_id, j.job_id) as runs_as,
               min(j.ord) over (partition by j.idempotency_key) as first_ord
        from unnest(p_jobs) j
        left join unnest(p_runs) r using (job_type, run_identity_hash)
    ), seen as (
        insert into duly.ledger as l (org_id, idempotency_key, job_id, first_seen_at, last_seen_at, expires_at)
        select p_org, i.idempotency_key, i.runs_as, p_now, p_now,
               p_now + make_interval(secs => (i.policy ->> 'ledger_ttl')::double precision)
        from input i where i.ord = i.first_ord order by i.idempotency_key
        on conflict (org_id, idempotency_key) do update set
            last_seen_at = p_now,
            job_id = case when l.expires_at > p_now then l.job_id else excluded.job_id end,
            first_seen_at = case when l.expires_at > p_now then l.first_seen_at else p_now end,
            expires_at = case when l.expires_at > p_now then l.expires_at else excluded.expires_at end,
            final_status = case when l.expires_at > p_now then l.final_status end,
            result_ref = case when l.expires_at > p_now then l.result_ref end,
            error_ref = case when l.expires_at > p_now then l.error_ref end
        returning l.idempotency_key, l.job_id
    ), fresh as materialized (
        select i.*, coalesce(i.scheduled_for, p_now) as run_at,
               i.policy ->> 'queue' as queue, (i.policy ->> 'priority')::smallint as priority
        from input i join seen s on s.idempotency_key = i.idempotency_key and s.job_id = i.job_id
    ), record as (
        insert into duly.job_records (
            org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, project_id, subject_id,
            actor_type, actor_id, request_id, correlation_id, traceparent, idempotency_key, run_identity_hash,
            payload, payload_ref, payload_hash, policy, metadata, scheduled_for, run_at, replay_of, parent_id,
            created_at)
        select p_org, f.job_id, f.result_id, f.job_type, f.policy ->> 'category', f.queue, f.priority,
               (f.policy -> 'retry' ->> 'max_attempts')::smallint, f.project_id, f.subject_id,
               f.actor_type, f.actor_id, f.request_id, f.correlation_id, f.traceparent, f.idempotency_key,
               f.run_identity_hash, f.payload, f.payload_ref, f.payload_hash, f.policy, f.metadata,
               f.scheduled_for, f.run_at, f.replay_of, f.parent_id, p_now
        from fresh f
        -- A caller who lost our answer may send the same job again.
        on conflict (org_id, job_id) do nothing
        returning job_id, job_type, queue, priority, run_at, actor_type, actor_id
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
        select p_org, r.job_id, 1, 'job.queued', 'queued', 0, p_now, r.actor_type, r.actor_id from record r
    ), runnable as (
        insert into duly.ready (queue, org_id, rank, job_id)
        select r.queue || coalesce('#' || l.job_type, ''), p_org, -r.priority, r.job_id
        from record r left join duly.lanes l using (job_type) where r.run_at <= p_now
    ), later as (
        insert into duly.scheduled (run_at, org_id, job_id, queue, rank)
        select r.run_at, p_org, r.job_id, r.queue, -r.priority from record r where r.run_at > p_now
    )
    select i.ord, s.job_id, r.job_id is not null and s.job_id = i.job_id
    from input i
    join seen s on s.idempotency_key = i.idempotency_key
    left join record r on r.job_id = i.job_id
    order by i.ord;
end;

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
    if exists (
        select from unnest(v_jobs) j
        where j.scheduled_for < v_now - interval '60 seconds' or not isfinite(j.scheduled_for)
    ) then
        perform duly.refuse('DU422', 'scheduled_for', 'lies in the past', 'give a time to come; 60 s of drift are tolerated');
    end if;
    if exists (select from unnest(v_jobs) j where j.run_identity_hash is not null) then
        v_runs := array(select r from duly.reserve_runs(p_org, v_jobs, v_now) r);
        v_written := array(select w from duly.write_jobs(p_org, v_jobs, v_runs, v_now) w);
        perform duly.settle_runs(p_org, v_jobs, v_written);
    else
        v_written := array(select w from duly.write_jobs(p_org, v_jobs, null, v_now) w);
    end if;
    perform duly.check_waiting(p_org, v_written);
    return query select * from unnest(v_written);
    if p_wake then
        perform pg_notify('duly_ready', '');
    end if;
end $$;

set local role duly_owner;
revoke create on schema duly from duly_engine;
