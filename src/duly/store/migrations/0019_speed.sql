-- Enqueueing and claiming at a lower price: plans are kept, policies travel once for all jobs that share them.

-- The same for equal policies: a claim tells each policy once. Null in the records of earlier releases.
alter table duly.job_records add column policy_hash uuid;

-- What enqueueing needs to know of a policy.
create type duly.policy_read as (
    policy jsonb, policy_hash uuid, queue text, priority smallint, category text, max_attempts smallint, ledger_ttl interval
);

-- A job of a batch, with everything derived that the caller may leave out; its policy by its place in the batch.
create type duly.job_read as (
    ord bigint, job_id uuid, result_id uuid, job_type text, project_id uuid, subject_id text,
    actor_type text, actor_id text, request_id text, correlation_id text, traceparent text,
    idempotency_key text, run_identity_hash text, payload jsonb, payload_ref text, payload_hash text,
    policy integer, metadata jsonb, scheduled_for timestamptz, replay_of uuid, parent_id uuid
);

-- A hash that nobody can choose: policies of several orgs meet in one claim.
create function duly.read_policies(p_policies jsonb) returns duly.policy_read[]
    language plpgsql stable
as $$
begin
    return array(
        select row(
            p, encode(substring(sha256(convert_to(p::text, 'UTF8')) for 16), 'hex')::uuid, p ->> 'queue',
            (p ->> 'priority')::smallint, p ->> 'category', (p -> 'retry' ->> 'max_attempts')::smallint,
            make_interval(secs => (p ->> 'ledger_ttl')::double precision))::duly.policy_read
        from jsonb_array_elements(p_policies) with ordinality e(p, n)
        order by e.n);
end $$;

-- In PL/pgSQL, because it keeps its plans: most batches are of one job.
create function duly.read_jobs(p_org uuid, p_jobs json, p_now timestamptz) returns duly.job_read[]
    language plpgsql volatile
as $$
declare
    v_first uuid := duly.uuid7_floor(p_now - interval '1 day');
    v_last uuid := duly.uuid7_floor(p_now + interval '1 day');
begin
    return array(
        select row(
            j.ord,
            -- A caller whose clock is far off would miss the partitions.
            case when j.job_id between v_first and v_last then j.job_id else duly.uuid7() end,
            coalesce(j.result_id, duly.random_id()),
            j.job_type, j.project_id, j.subject_id, j.actor_type, j.actor_id, j.request_id, j.correlation_id,
            j.traceparent,
            coalesce(j.idempotency_key, concat_ws(':', j.job_type, p_org, j.project_id,
                case when j.subject_id is null and j.scheduled_for is null then h.payload_hash
                else duly.stable_hash(jsonb_build_array(h.payload_hash, j.subject_id, extract(epoch from j.scheduled_for))::text) end)),
            j.run_identity_hash, j.payload, j.payload_ref, h.payload_hash, j.policy, j.metadata, j.scheduled_for,
            j.replay_of, j.parent_id)::duly.job_read
        from rows from (json_to_recordset(p_jobs) as (
            job_id uuid, result_id uuid, job_type text, project_id uuid, subject_id text, actor_type text,
            actor_id text, request_id text, correlation_id text, traceparent text, idempotency_key text,
            run_identity_hash text, payload jsonb, payload_ref text, payload_hash text, policy integer, metadata jsonb,
            scheduled_for timestamptz, replay_of uuid, parent_id uuid
        )) with ordinality as j(
            job_id, result_id, job_type, project_id, subject_id, actor_type, actor_id, request_id, correlation_id,
            traceparent, idempotency_key, run_identity_hash, payload, payload_ref, payload_hash, policy, metadata,
            scheduled_for, replay_of, parent_id, ord
        )
        cross join lateral (select j.payload::text as payload) t
        cross join lateral (
            -- Most payloads hold no instant and are their own canonical form: spare them the call.
            select coalesce(j.payload_hash, case
                when t.payload like '%T__:__%' then duly.stable_hash(duly.canonical(j.payload))
                else encode(sha256(convert_to(t.payload, 'UTF8')), 'hex') end) as payload_hash
        ) h);
end $$;

-- As in 0007, for the new type.
create function duly.reserve_runs(p_org uuid, p_jobs duly.job_read[], p_now timestamptz)
returns setof duly.active_runs
    language sql
begin atomic
    with first as (
        select j.*, min(j.ord) over (partition by j.idempotency_key) as first_ord from unnest(p_jobs) j
    )
    insert into duly.active_runs as a (org_id, job_type, run_identity_hash, job_id)
    select distinct on (j.job_type, j.run_identity_hash) p_org, j.job_type, j.run_identity_hash, j.job_id
    from first j
    where j.run_identity_hash is not null and j.ord = j.first_ord
      -- A count, so that it stays a look-up for each.
      and (select count(*) from duly.ledger l
           where l.org_id = p_org and l.idempotency_key = j.idempotency_key and l.expires_at > p_now) = 0
    order by j.job_type, j.run_identity_hash, j.ord
    on conflict (org_id, job_type, run_identity_hash) do update set job_id = a.job_id
    returning a.*;
end;

create function duly.settle_runs(p_org uuid, p_jobs duly.job_read[], p_written duly.job_written[]) returns void
    language plpgsql
as $$
begin
    delete from duly.active_runs a
    using (select (p_jobs[w.ord]).*, w.created from unnest(p_written) w) j
    where not j.created and a.org_id = p_org and a.job_type = j.job_type
      and a.run_identity_hash = j.run_identity_hash and a.job_id = j.job_id
      -- A count, so that it stays a look-up of the few rows that come this far.
      and (select count(*) from duly.job_records r where r.org_id = p_org and r.job_id = j.job_id) = 0;
    if exists (
        select from unnest(p_written) w
        where not w.created
          and (select count(*) from duly.job_records r where r.org_id = p_org and r.job_id = w.job_id) = 0
          and w.job_id = any (array(select j.job_id from unnest(p_jobs) j))
    ) then
        raise serialization_failure using message = 'a concurrent enqueue of the same key; try again';
    end if;
end $$;

-- Write the jobs. Locks: ledger keys in their order, so that two batches cannot deadlock.
-- `p_runs` says which identities belong to which run; a job whose run is another's is not written.
create function duly.write_jobs(
    p_org uuid, p_policies duly.policy_read[], p_jobs duly.job_read[], p_runs duly.active_runs[], p_now timestamptz
) returns duly.job_written[]
    -- It joins the batch with itself: thousands against thousands, whatever a cached plan was made for.
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
    select array_agg(row(i.ord, s.job_id, r.job_id is not null and s.job_id = i.job_id)::duly.job_written order by i.ord)
    into v_written
    from input i
    join seen s on s.idempotency_key = i.idempotency_key
    left join record r on r.job_id = i.job_id;
    return v_written;
end $$;

grant execute on function
    duly.read_policies, duly.read_jobs, duly.reserve_runs(uuid, duly.job_read[], timestamptz),
    duly.settle_runs(uuid, duly.job_read[], duly.job_written[]),
    duly.write_jobs(uuid, duly.policy_read[], duly.job_read[], duly.active_runs[], timestamptz) to duly_engine;

-- The next function belongs to the engine, and only its owner may replace it. Calls that are under way still use what
-- the old one used: that goes with the next release.
grant create on schema duly to duly_engine;
set local role duly_engine;

-- The one door: many jobs of one org. Duplicates answer with the job that was first.
-- The memory keeps the sorts of a batch of thousands off the disk.
create or replace function duly.enqueue_jobs(p_org uuid, p_policies jsonb, p_jobs json, p_wake boolean default true)
returns setof duly.job_written
    language plpgsql security definer set search_path = pg_catalog, pg_temp set work_mem = '32MB'
    set enable_hashjoin = on set enable_mergejoin = on set enable_seqscan = off
as $$
declare
    v_now timestamptz := duly.now();
    v_policies duly.policy_read[];
    v_jobs duly.job_read[];
    v_runs duly.active_runs[];
    v_written duly.job_written[];
    v_identified boolean;
    v_late boolean;
begin
    perform duly.check_org(p_org);
    perform duly.check_policies(p_policies);
    v_policies := duly.read_policies(p_policies);
    v_jobs := duly.read_jobs(p_org, p_jobs, v_now);
    select bool_or(j.run_identity_hash is not null),
           bool_or(j.scheduled_for < v_now - interval '60 seconds' or not isfinite(j.scheduled_for))
    into v_identified, v_late from unnest(v_jobs) j;
    if v_identified then
        v_runs := array(select r from duly.reserve_runs(p_org, v_jobs, v_now) r);
    end if;
    v_written := duly.write_jobs(p_org, v_policies, v_jobs, v_runs, v_now);
    if v_identified then
        perform duly.settle_runs(p_org, v_jobs, v_written);
    end if;
    -- Of new jobs only: who lost the answer may ask for the same job again when its time has come.
    if v_late and exists (
        select from unnest(v_jobs) j
        where (j.scheduled_for < v_now - interval '60 seconds' or not isfinite(j.scheduled_for))
          and exists (select from unnest(v_written) w where w.ord = j.ord and w.created)
    ) then
        perform duly.refuse('DU422', 'scheduled_for', 'lies in the past', 'give a time to come; 60 s of drift are tolerated');
    end if;
    perform duly.check_waiting(p_org, v_written);
    if p_wake then
        -- A lone job tells its lane, so that a worker with nothing to do need not look for it.
        perform pg_notify('duly_ready', case when cardinality(v_jobs) = 1
            then duly.lane((v_policies[1]).queue, (v_jobs[1]).job_type) else '' end);
    end if;
    return query select * from unnest(v_written);
end $$;

set local role duly_owner;
revoke create on schema duly from duly_engine;

-- Busy tables are cleaned by the chores. Before PostgreSQL 17 only their owner can, and else autovacuum does.
do $$
begin
    if current_setting('server_version_num')::integer >= 170000 then
        grant maintain on duly.ready, duly.scheduled, duly.claims, duly.active_runs to duly_engine;
    end if;
end $$;

-- The jobs of a claim are random bits: trying to compress them is for nothing.
alter table duly.claims alter column org_ids set storage external, alter column job_ids set storage external;
