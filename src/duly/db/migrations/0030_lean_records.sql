-- Lean records. What new jobs share or can be computed from is no longer stored with each of them: the policy is a row of
-- `policies`, a generated idempotency key and the hash of a payload are computed, the event job.queued is the record
-- itself, listed in `event_batches`; an idempotency key is found by 16 bytes of its hash. The views show every field as
-- before. Jobs that are delayed or have an identity, replays and batches with duplicates still have it all in their record.

-- Lock all that is changed first: views before tables, as readers do.
do $$
declare
    v_view text;
begin
    foreach v_view in array array['jobs', 'job_events', 'job_attempts', 'idempotency_keys'] loop
        execute format('alter view duly.%I set (security_invoker = true)', v_view);
    end loop;
end $$;
lock table duly.job_records, duly.event_log, duly.job_states, duly.event_batches, duly.workers in access exclusive mode;

----------------------------------------------------------------------------------------------------------------------
-- 1  Policies
----------------------------------------------------------------------------------------------------------------------

-- Policies by the hash of their text: those of jobs, which reference them. Cryptographic, so that no org can make a
-- collision: policies of several orgs are in one claim. They hold what job types declare, so any tenant may read them.
create table duly.policies (
    policy_hash uuid primary key,
    policy jsonb not null,
    -- The fields that enqueueing needs.
    queue text not null,
    priority smallint not null,
    category text not null,
    max_attempts smallint not null check (max_attempts > 0),
    ledger_ttl interval not null
);
grant select on duly.policies to duly_tenant, duly_operator;
grant select, insert on duly.policies to duly_engine;

-- The hash of a policy as the client sends it, by which its row is found. Stable, as `convert_to` is: it is inlined then.
create function duly.policy_hash(p_policy text) returns uuid
    language sql stable parallel safe
    return encode(substring(sha256(convert_to(p_policy, 'UTF8')) for 16), 'hex')::uuid;

-- Store policies that are not stored yet. Those that another transaction is storing are left out: that one may be a long
-- one of an application, and all others with the same policy would wait for it.
create function duly.store_policies(p_policies duly.policy_read[]) returns void
    language plpgsql set plan_cache_mode = force_generic_plan
as $$
begin
    insert into duly.policies (policy_hash, policy, queue, priority, category, max_attempts, ledger_ttl)
    select p.policy_hash, p.policy, p.queue, p.priority, p.category, p.max_attempts, p.ledger_ttl
    from unnest(p_policies) p
    where not exists (select from duly.policies o where o.policy_hash = p.policy_hash)
      and pg_try_advisory_xact_lock(484623197, hashtext(p.policy_hash::text))
    on conflict do nothing;
end $$;

-- Return the policies of a batch in their order; new ones are checked and stored. Fewer if one could not be stored now.
-- Queues can be removed: each call looks.
create function duly.find_policies(p_policies text[]) returns duly.policies[]
    -- A batch has few policies: planning for their number would take longer than finding them.
    language plpgsql set plan_cache_mode = force_generic_plan
as $$
declare
    v_found duly.policies[];
begin
    for i in 1..2 loop
        v_found := array(
            select p from unnest(p_policies) with ordinality t(policy, n)
            join duly.policies p on p.policy_hash = duly.policy_hash(t.policy)
            join duly.queues q on q.queue = p.queue
            order by t.n);
        exit when i = 2 or cardinality(v_found) = cardinality(p_policies);
        perform duly.check_policies((select jsonb_agg(p::jsonb) from unnest(p_policies) p));
        perform duly.store_policies(array(
            select row(r.policy, duly.policy_hash(p), r.queue, r.priority, r.category, r.max_attempts, r.ledger_ttl)::duly.policy_read
            from unnest(p_policies) p
            cross join lateral unnest(duly.read_policies(jsonb_build_array(p::jsonb))) r));
    end loop;
    return v_found;
end $$;
grant execute on function duly.policy_hash, duly.store_policies, duly.find_policies to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 2  Records
----------------------------------------------------------------------------------------------------------------------

-- Null in lean records: the policy is the one of `policy_hash`; key and hash are those that follow from the payload. The
-- hash of a payload that is not small is stored: views would compute it for every poll.
alter table duly.job_records
    alter column policy drop not null,
    alter column idempotency_key drop not null,
    alter column payload_hash drop not null,
    -- The transaction of the event job.queued, if the record is that event; null if the event has a row of its own.
    add column queued_xid xid8;

-- Constraints are compiled for every statement, which cost a lone job a sixth of its time. What they said is checked once
-- for each call (`check_origin`, `check_payload`), or is written by statements as constants; the doctor looks for rows that break them.
do $$
declare
    v_constraint record;
begin
    for v_constraint in
        select c.conrelid::regclass as parent, c.conname from pg_catalog.pg_constraint c
        where c.contype = 'c' and c.conrelid in (
            'duly.job_records'::regclass, 'duly.job_states'::regclass, 'duly.event_log'::regclass)
    loop
        execute format('alter table %s drop constraint %I', v_constraint.parent, v_constraint.conname);
    end loop;
end $$;

-- As before, but partitions store columns as their parent does: without a compression of arrays of ids.
create or replace function duly.make_partition(p_parent text, p_from timestamptz, p_to timestamptz) returns boolean
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    t duly.partitioned_tables := (select p from duly.partitioned_tables p where p.parent = p_parent);
    child text := format('%s_%s', p_parent, to_char(p_from at time zone 'UTC', 'YYYYMMDD'));
    low text := duly.partition_bound(t.key_kind, p_from);
    high text := duly.partition_bound(t.key_kind, p_to);
begin
    if to_regclass('duly.' || child) is not null then
        return false;
    end if;
    execute format('create table duly.%I (like duly.%I including defaults including constraints including storage) %s',
        child, p_parent, t.storage);
    execute format('with moved as (delete from duly.%I where %I >= %s and %I < %s returning *)
        insert into duly.%I select * from moved', p_parent || '_default', t.key_column, low, t.key_column, high, child);
    execute format('alter table duly.%I attach partition duly.%I for values from (%s) to (%s)',
        p_parent, child, low, high);
    perform duly.lock_partition(child);
    return true;
end $$;
do $$
declare
    v_partition regclass;
begin
    for v_partition in
        select i.inhrelid from pg_catalog.pg_inherits i where i.inhparent = 'duly.event_batches'::regclass
    loop
        execute format('alter table %s alter column job_ids set storage external', v_partition);
    end loop;
end $$;

-- The hash of a payload: of its stable text. Most payloads hold no instant and are stable as they are. With the text of the
-- payload for those who have it: to write it takes longer than to hash it.
create function duly.payload_hash(p_payload jsonb, p_text text) returns text
    language sql stable parallel safe
    return case when p_text like '%T__:__%' then duly.stable_hash(duly.canonical(p_payload))
        else encode(sha256(convert_to(p_text, 'UTF8')), 'hex') end;
create function duly.payload_hash(p_payload jsonb) returns text
    language sql stable parallel safe
    return duly.payload_hash(p_payload, p_payload::text);

-- The idempotency key of a job that is not delayed, if its caller names none: what the jobs of a call share, and the rest.
create function duly.key_prefix(p_org uuid, p_job_type text, p_project uuid) returns text
    language sql stable parallel safe
    return concat_ws(':', p_job_type, p_org, p_project, '');
create function duly.generated_key(p_prefix text, p_subject text, p_payload_hash text) returns text
    language sql stable parallel safe
    return p_prefix || case when p_subject is null then p_payload_hash
        else duly.stable_hash(jsonb_build_array(p_payload_hash, p_subject, null)::text) end;

-- The policy of a record.
create function duly.policy_of(p_policy jsonb, p_hash uuid) returns jsonb
    language sql stable parallel safe
    return coalesce(p_policy, (select p.policy from duly.policies p where p.policy_hash = p_hash));

grant execute on function
    duly.payload_hash(jsonb, text), duly.payload_hash(jsonb), duly.key_prefix, duly.generated_key, duly.policy_of, duly.canonical, duly.stable_hash
    to duly_tenant, duly_engine, duly_operator;

----------------------------------------------------------------------------------------------------------------------
-- 3  Idempotency keys
----------------------------------------------------------------------------------------------------------------------

-- Idempotency keys by the first half of their SHA-256. It replaces `ledger`, which maintenance empties.
create table duly.key_ledger (
    org_id uuid not null,
    key_hash bytea not null,
    job_id uuid not null,
    first_seen_at timestamptz not null,
    -- Null until the key is seen again.
    last_seen_at timestamptz,
    expires_at timestamptz not null,
    -- Null if it is the key of the job itself.
    idempotency_key text,
    -- Written before the job is deleted, with the key: what the key answers from then on.
    final_status text check (final_status in ('succeeded', 'failed', 'dead')),
    result_ref text,
    error_ref text,
    primary key (org_id, key_hash)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
create index key_ledger_expiry on duly.key_ledger using brin (expires_at);
select duly.isolate('duly.key_ledger');
grant select on duly.key_ledger to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.key_ledger to duly_engine;

create function duly.key_hash(p_key text) returns bytea
    language sql stable parallel safe
    return substring(sha256(convert_to(p_key, 'UTF8')) for 16);
grant execute on function duly.key_hash to duly_tenant, duly_engine, duly_operator;

-- Take over keys of this org from `ledger`, before they are looked up here. Locks: the rows of `ledger`.
create function duly.take_over_keys(p_org uuid, p_keys text[]) returns void
    language plpgsql
as $$
begin
    with old as (
        delete from duly.ledger l
        where l.org_id = p_org and l.idempotency_key = any (p_keys) returning l.*
    )
    insert into duly.key_ledger (
        org_id, key_hash, job_id, first_seen_at, last_seen_at, expires_at, final_status, idempotency_key, result_ref, error_ref)
    select o.org_id, duly.key_hash(o.idempotency_key), o.job_id, o.first_seen_at, o.last_seen_at, o.expires_at,
           o.final_status, o.idempotency_key, o.result_ref, o.error_ref
    from old o
    on conflict do nothing;
end $$;

-- Take over some keys of all orgs; returns their number. Expired keys are free: they are deleted.
-- Locks: the rows, skipping those that an enqueue takes over.
create function duly.take_over_keys(p_limit integer) returns bigint
    language sql
begin atomic
    with part as materialized (
        select l.org_id, l.idempotency_key from duly.ledger l limit p_limit for update skip locked
    ), old as (
        delete from duly.ledger l using part s
        where l.org_id = s.org_id and l.idempotency_key = s.idempotency_key returning l.*
    ), taken as (
        insert into duly.key_ledger (
            org_id, key_hash, job_id, first_seen_at, last_seen_at, expires_at, final_status, idempotency_key, result_ref,
            error_ref)
        select o.org_id, duly.key_hash(o.idempotency_key), o.job_id, o.first_seen_at, o.last_seen_at, o.expires_at,
               o.final_status, o.idempotency_key, o.result_ref, o.error_ref
        from old o where o.expires_at > duly.now()
        on conflict do nothing
    )
    select count(*) from old;
end;
grant execute on function duly.take_over_keys(uuid, text[]), duly.take_over_keys(integer) to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 4  Events
----------------------------------------------------------------------------------------------------------------------

-- A transaction may enqueue for an org more than once, at the same time: its batches differ by their first job.
alter table duly.event_batches add column first_job uuid not null default gen_random_uuid();
alter table duly.event_batches alter column first_job drop default;
alter table duly.event_batches drop constraint event_batches_pkey;
alter table duly.event_batches add primary key (org_id, occurred_at, event_type, first_job);

create or replace function duly.events_of(p_org uuid, p_job uuid) returns setof duly.event_log
    language sql stable
as $$
    select l.* from duly.event_log l where l.org_id = p_org and l.job_id = p_job
    union all
    select r.org_id, r.job_id, 1, 'job.queued', 'queued', 0, r.created_at, r.actor_type, r.actor_id, null::jsonb,
           r.queued_xid, true
    from duly.job_records r where r.org_id = p_org and r.job_id = p_job and r.queued_xid is not null
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

----------------------------------------------------------------------------------------------------------------------
-- 5  Views, with the columns of 0.9
----------------------------------------------------------------------------------------------------------------------

create or replace view duly.jobs with (security_invoker = true) as
select
    r.org_id, r.job_id, r.result_id, r.job_type, r.category, r.queue, r.priority,
    case when r.priority >= 50 then 'expedite' else 'default' end as priority_class,
    r.project_id, r.subject_id, r.actor_type, r.actor_id,
    case when r.actor_type = 'user' then r.actor_id end as requested_by_user_id,
    case when r.actor_type = 'api_key' then r.actor_id end as api_key_id,
    r.request_id, r.correlation_id, r.traceparent, split_part(r.traceparent, '-', 2) as trace_id,
    coalesce(r.idempotency_key, duly.generated_key(
        duly.key_prefix(r.org_id, r.job_type, r.project_id), r.subject_id,
        coalesce(r.payload_hash, duly.payload_hash(r.payload)))) as idempotency_key,
    r.run_identity_hash,
    r.payload, coalesce(r.payload_hash, duly.payload_hash(r.payload)) as request_payload_hash,
    r.payload_ref as request_payload_ref,
    duly.policy_of(r.policy, r.policy_hash) as policy, r.metadata, r.scheduled_for, r.replay_of, r.parent_id,
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

-- With the org and the id of the record: a condition on those of the events did not reach the records, so that reading the
-- events of one job read all records of its org.
create or replace view duly.job_events with (security_invoker = true) as
select
    e.job_id || ':' || e.event_seq as event_id,
    r.org_id, r.job_id, e.event_seq, e.event_type, e.status, e.attempt, e.occurred_at,
    e.actor_type, e.actor_id, coalesce(e.payload, '{}') as payload_json, e.commit_xid,
    r.job_type, r.project_id, r.request_id, r.correlation_id, split_part(r.traceparent, '-', 2) as trace_id, r.result_id
from duly.job_records r
cross join lateral duly.events_of(r.org_id, r.job_id) e;

create or replace view duly.job_attempts with (security_invoker = true) as
select
    r.org_id, r.job_id, b.attempt, b.actor_id as worker_id, b.occurred_at as started_at,
    e.occurred_at as ended_at, e.event_type as ended_by, coalesce(e.payload, '{}') as detail
from duly.job_records r
cross join lateral duly.events_of(r.org_id, r.job_id) b
left join lateral (
    select x.occurred_at, x.event_type, x.payload
    from duly.events_of(r.org_id, r.job_id) x
    where x.attempt = b.attempt and x.event_seq > b.event_seq
      and x.event_type not in ('job.progressed', 'job.partial', 'job.cancel_requested')
    order by x.event_seq limit 1
) e on true
where b.event_type = 'job.started';

-- Every idempotency key, of both ledgers. One key is found by `key_hash`.
create view duly.all_keys with (security_invoker = true) as
select org_id, key_hash, job_id, first_seen_at, coalesce(last_seen_at, first_seen_at) as last_seen_at, expires_at,
       final_status, idempotency_key, result_ref, error_ref
from duly.key_ledger
union all
select org_id, duly.key_hash(idempotency_key), job_id, first_seen_at, last_seen_at, expires_at,
       final_status, idempotency_key, result_ref, error_ref
from duly.ledger;
grant select on duly.all_keys to duly_tenant, duly_engine, duly_operator;

create or replace view duly.idempotency_keys with (security_invoker = true) as
select
    l.org_id, coalesce(l.idempotency_key, r.idempotency_key, duly.generated_key(
        duly.key_prefix(r.org_id, r.job_type, r.project_id), r.subject_id,
        coalesce(r.payload_hash, duly.payload_hash(r.payload)))) as idempotency_key,
    l.job_id, l.first_seen_at, l.last_seen_at, l.expires_at,
    coalesce(l.final_status, case
        when s.status in ('running', 'partial') then 'running'
        when s.status = 'completed' then 'succeeded'
        when s.outcome = 'dead' then 'dead'
        when s.status in ('failed', 'canceled') then 'failed'
        else 'pending' end) as status,
    coalesce(l.result_ref, case when s.status = 'completed' then r.result_id::text end) as result_ref,
    coalesce(l.error_ref, case when s.status in ('failed', 'canceled') then coalesce(s.error_code, 'run.canceled') end)
        as error_ref,
    l.key_hash
from duly.all_keys l
left join lateral (select x.* from duly.state_of(l.org_id, l.job_id) x limit 1) s on true
left join duly.job_records r on r.org_id = l.org_id and r.job_id = l.job_id;

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
select org_id, job_id, false, 'answers a live idempotency key' from duly.key_ledger
where final_status is null and expires_at > duly.now()
union all
select org_id, job_id, false, 'answers a live idempotency key' from duly.ledger
where final_status is null and expires_at > duly.now();
set local role duly_owner;
revoke create on schema duly from duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 6  Replays
----------------------------------------------------------------------------------------------------------------------

create or replace function duly.next_replay(p_org uuid, p_job uuid, out idempotency_key text, out active_job_id uuid)
    language plpgsql stable
as $$
begin
    for n in 1..2147483647 loop
        idempotency_key := format('replay:%s:%s', p_job, n);
        select case when r.replay_of = p_job and s.finished_at is null then r.job_id end into active_job_id
        from (
            select l.job_id from duly.key_ledger l
            where l.org_id = p_org and l.key_hash = duly.key_hash(next_replay.idempotency_key) and l.expires_at > duly.now()
            union all
            select l.job_id from duly.ledger l
            where l.org_id = p_org and l.idempotency_key = next_replay.idempotency_key and l.expires_at > duly.now()
        ) l
        left join duly.job_records r on r.org_id = p_org and r.job_id = l.job_id
        left join lateral (select x.finished_at from duly.state_of(p_org, l.job_id) x limit 1) s on true;
        exit when not found or active_job_id is not null;
    end loop;
end $$;

-- Policies are read through their reference.
create or replace function duly.replay(
    p_org uuid, p_jobs json, p_actor_type text, p_actor_id text, p_request_id text, p_traceparent text, p_reason text
) returns table (replay_of uuid, disposition text, job_id uuid, run_at timestamptz)
    language plpgsql
as $$
#variable_conflict use_column
declare
    v_now timestamptz := duly.now();
    v_plans duly.replay_plan[] := array(select p from duly.plan_replays(p_org, p_jobs) p);
    v_new duly.replay_plan[] := array(select p from unnest(v_plans) p where p.disposition = 'created');
    v_policies jsonb;
    v_jobs json;
    v_written duly.job_written[];
begin
    with source as (
        select r.*, t.policy as its_policy, dense_rank() over (order by t.policy) - 1 as policy_number, p.ord,
               p.idempotency_key as new_key, v_now + make_interval(secs => p.delay) as due_at,
               p.payload is not null as edited, p.payload as new_payload, p.payload_ref as new_ref, p.payload_hash as new_hash
        from unnest(v_new) p join duly.job_records r on r.org_id = p_org and r.job_id = p.replay_of
        cross join lateral (select duly.policy_of(r.policy, r.policy_hash) as policy) t
    )
    select
        (select jsonb_agg(d.its_policy order by d.its_policy) from (select distinct s.its_policy from source s) d),
        (select json_agg(json_build_object(
            'job_type', s.job_type, 'policy', s.policy_number, 'replay_of', s.job_id, 'idempotency_key', s.new_key,
            'project_id', s.project_id, 'subject_id', s.subject_id, 'correlation_id', s.correlation_id,
            'run_identity_hash', s.run_identity_hash, 'metadata', s.metadata, 'scheduled_for', s.due_at,
            'payload', case when s.edited then s.new_payload else s.payload end,
            'payload_ref', case when s.edited then s.new_ref else s.payload_ref end,
            'payload_hash', case when s.edited then s.new_hash else s.payload_hash end,
            'actor_type', p_actor_type, 'actor_id', p_actor_id, 'request_id', p_request_id,
            'traceparent', p_traceparent) order by s.ord) from source s)
    into v_policies, v_jobs;
    if v_jobs is not null then
        v_written := array(select w from duly.enqueue_jobs(p_org, v_policies, v_jobs, false) w order by w.ord);
    end if;
    -- Between the plan and the write an identity may have gone to a run that is none of ours. The ledger then
    -- names that run under our key: better to begin again than to keep this.
    if exists (
        select from unnest(v_written) w left join duly.job_records r on r.org_id = p_org and r.job_id = w.job_id
        where not w.created and r.replay_of is distinct from (v_new[w.ord]).replay_of
    ) then
        raise serialization_failure using message = 'another run took the identity meanwhile; try again';
    end if;
    -- A job that was never claimed has no state and counts as event 1; this one has a second event already.
    insert into duly.job_states (org_id, job_id, status, outcome, event_seq, run_at, updated_at)
    select r.org_id, r.job_id, 'queued', 'pending', 2, r.run_at, v_now
    from unnest(v_written) w join duly.job_records r on r.org_id = p_org and r.job_id = w.job_id
    where w.created;
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
    select p_org, w.job_id, 2, 'job.replayed', 'queued', 0, v_now, p_actor_type, p_actor_id, jsonb_build_object(
        'replay_of', (v_new[w.ord]).replay_of, 'by', p_actor_type || ':' || p_actor_id, 'reason', p_reason)
    from unnest(v_written) w where w.created;
    return query
    select p.replay_of, p.disposition, p.job_id, null::timestamptz from unnest(v_plans) p where p.disposition <> 'created'
    union all
    select (v_new[w.ord]).replay_of, case when w.created then 'created' else 'found' end, w.job_id, r.run_at
    from unnest(v_written) w join duly.job_records r on r.org_id = p_org and r.job_id = w.job_id;
end $$;

----------------------------------------------------------------------------------------------------------------------
-- 7  Enqueueing
----------------------------------------------------------------------------------------------------------------------

-- What every job needs, of the fields that it shares with others.
create function duly.check_origin(
    p_job_type text, p_actor_type text, p_actor_id text, p_request_id text, p_correlation_id text
) returns boolean
    language plpgsql immutable
as $$
begin
    if p_job_type <> '' and p_actor_id <> '' and p_request_id <> '' and p_correlation_id <> ''
        and p_actor_type in ('user', 'api_key', 'system', 'worker', 'operator')
    then
        return true;
    end if;
    perform duly.refuse('DU422', f.name, case when f.value <> '' then format('%L is not valid', f.value) else 'missing' end,
        case when f.value <> '' then 'one of user, api_key, system, worker, operator'
        else 'every job says who asked for what; pass ' || f.name end)
    from (values ('job_type', p_job_type), ('actor_type', p_actor_type), ('actor_id', p_actor_id),
                 ('request_id', p_request_id), ('correlation_id', p_correlation_id)) f(name, value)
    where coalesce(f.value, '') = ''
       or f.name = 'actor_type' and f.value not in ('user', 'api_key', 'system', 'worker', 'operator')
    limit 1;
    return false;
end $$;

create function duly.check_payload(p_payload jsonb) returns boolean
    language plpgsql immutable
as $$
begin
    if jsonb_typeof(p_payload) is distinct from 'object' then
        perform duly.refuse('DU422', 'payload', 'not a JSON object', 'pass an object');
    end if;
    return true;
end $$;
grant execute on function duly.check_origin, duly.check_payload to duly_engine;

create or replace function duly.reserve_runs(p_org uuid, p_jobs duly.job_read[], p_now timestamptz)
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
      and (select count(*) from duly.key_ledger l
           where l.org_id = p_org and l.key_hash = duly.key_hash(j.idempotency_key) and l.expires_at > p_now) = 0
    order by j.job_type, j.run_identity_hash, j.ord
    on conflict (org_id, job_type, run_identity_hash) do update set job_id = a.job_id
    returning a.*;
end;

-- Jobs with options, and batches with duplicates: everything of a job is in its record, and its event has a row.
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
        select j.ord, j.job_id, j.idempotency_key, k.key_hash, j.policy, coalesce(r.job_id, j.job_id) as runs_as,
               row_number() over (partition by k.key_hash order by j.ord) as turn
        from unnest(p_jobs) j
        cross join lateral (select duly.key_hash(j.idempotency_key) as key_hash) k
        left join unnest(p_runs) r using (job_type, run_identity_hash)
    ), seen as (
        insert into duly.key_ledger as l (org_id, key_hash, idempotency_key, job_id, first_seen_at, expires_at)
        select p_org, i.key_hash, case when i.runs_as <> i.job_id then i.idempotency_key end, i.runs_as, p_now,
               p_now + p.ledger_ttl
        from input i join policies p on p.number = i.policy
        where i.turn = 1 order by i.key_hash
        on conflict (org_id, key_hash) do update set
            last_seen_at = p_now,
            job_id = case when l.expires_at > p_now then l.job_id else excluded.job_id end,
            idempotency_key = case when l.expires_at > p_now then l.idempotency_key else excluded.idempotency_key end,
            first_seen_at = case when l.expires_at > p_now then l.first_seen_at else p_now end,
            expires_at = case when l.expires_at > p_now then l.expires_at else excluded.expires_at end,
            final_status = case when l.expires_at > p_now then l.final_status end,
            result_ref = case when l.expires_at > p_now then l.result_ref end,
            error_ref = case when l.expires_at > p_now then l.error_ref end
        returning l.key_hash, l.job_id
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
        join input i on i.ord = j.ord
        join seen s on s.job_id = j.job_id and s.key_hash = i.key_hash
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
    join seen s on s.key_hash = i.key_hash
    left join record r on r.job_id = i.job_id;
    return v_written;
end $$;

-- Store the policies and leave only their hashes, except of those that could not be stored now.
create function duly.refer_to_policies(p_policies duly.policy_read[]) returns duly.policy_read[]
    language plpgsql set plan_cache_mode = force_generic_plan
as $$
begin
    perform duly.store_policies(p_policies);
    return array(
        select row(case when o.policy_hash is null then p.policy end, p.policy_hash, p.queue, p.priority, p.category,
            p.max_attempts, p.ledger_ttl)::duly.policy_read
        from unnest(p_policies) with ordinality p(
            policy, policy_hash, queue, priority, category, max_attempts, ledger_ttl, n)
        left join duly.policies o on o.policy_hash = p.policy_hash
        order by p.n);
end $$;
grant execute on function duly.refer_to_policies to duly_engine;

grant create on schema duly to duly_engine;
set local role duly_engine;
create or replace function duly.enqueue_jobs(p_org uuid, p_policies jsonb, p_jobs json, p_wake boolean default true)
returns setof duly.job_written
    language plpgsql security definer set search_path = pg_catalog, pg_temp set work_mem = '32MB'
    set enable_hashjoin = on set enable_mergejoin = on set enable_seqscan = off
as $$
declare
    v_now timestamptz := duly.now();
    v_layout smallint := (select max(l.layout) from duly.layouts l);
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
    if v_layout >= 3 then
        v_policies := duly.refer_to_policies(v_policies);
    end if;
    v_jobs := duly.read_jobs(p_org, p_jobs, v_now);
    perform duly.check_origin(j.job_type, j.actor_type, j.actor_id, j.request_id, j.correlation_id), duly.check_payload(j.payload)
    from unnest(v_jobs) j;
    if v_layout is distinct from 4 then
        perform duly.take_over_keys(p_org, array(select j.idempotency_key from unnest(v_jobs) j));
    end if;
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

-- Write new jobs as lean records; ends with `unique_violation` if one has the key of another job.
-- Locks: ledger keys in their order. The ledger first: a duplicate ends the statement before anything else is written.
create function duly.write_lean_jobs(
    p_org uuid, p_policies duly.policies[], p_heads duly.job_head[], p_head_of integer[], p_job_ids uuid[],
    p_result_ids uuid[], p_payloads jsonb, p_keys text[], p_options json, p_now timestamptz
) returns void
    -- A batch meets few heads: a hash of them, whatever size a cached plan was made for.
    language plpgsql set plan_cache_mode = force_generic_plan
as $$
begin
    with head as materialized (
        select h.n::integer - 1 as number, h.job_type, h.actor_type, h.actor_id, h.request_id, h.correlation_id, h.project_id,
               h.traceparent, h.parent_id, p.policy_hash, p.queue, p.priority, p.category, p.max_attempts,
               p_now + p.ledger_ttl as expires_at, p.queue || coalesce('#' || l.job_type, '') as lane,
               duly.key_prefix(p_org, h.job_type, h.project_id) as key_prefix
        from unnest(p_heads) with ordinality h(
            job_type, policy_number, actor_type, actor_id, request_id, correlation_id, project_id, traceparent, parent_id, n)
        cross join lateral (select (p_policies[h.policy_number + 1]).*) p
        left join duly.lanes l on l.job_type = h.job_type
    ), input as materialized (
        -- What differs from job to job.
        select j.job_id, j.result_id, coalesce(j.head, 0) as head, j.idempotency_key, j.payload, o.subject_id, o.payload_ref,
               o.metadata, coalesce(o.payload_hash, duly.payload_hash(j.payload, t.text)) as payload_hash,
               o.payload_hash is not null or octet_length(t.text) > 500 as stores_hash
        from rows from (
            unnest(p_job_ids), unnest(p_result_ids), unnest(p_head_of), unnest(p_keys), jsonb_array_elements(p_payloads)
        ) with ordinality as j(job_id, result_id, head, idempotency_key, payload, ord)
        left join json_to_recordset(coalesce(p_options, '[]')) as o(
            ord bigint, subject_id text, payload_ref text, payload_hash text, metadata jsonb) using (ord)
        -- Once for all that need it: not merged into them.
        cross join lateral (select j.payload::text as text offset 0) t
        where case when jsonb_typeof(j.payload) = 'object' then true else duly.check_payload(j.payload) end
    ), seen as (
        insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
        select p_org, duly.key_hash(coalesce(
                   i.idempotency_key, duly.generated_key(h.key_prefix, i.subject_id, i.payload_hash))) as key_hash,
               i.job_id, p_now, h.expires_at
        from input i join head h on h.number = i.head
        order by key_hash
        returning 1
    ), event as (
        -- In parts of a thousand, so that a page of a feed reads no more.
        insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
        select p_org, p_now, 'job.queued', 1, b.job_ids[1], cardinality(b.job_ids), b.job_ids
        from generate_series(1, cardinality(p_job_ids), 1000) s
        cross join lateral (select p_job_ids[s:s + 999] as job_ids) b
    ), runnable as (
        insert into duly.ready (queue, org_id, rank, job_id, fresh)
        select h.lane, p_org, -h.priority, i.job_id, true
        from input i join head h on h.number = i.head
    )
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, project_id, subject_id, actor_type,
        actor_id, request_id, correlation_id, traceparent, idempotency_key, payload, payload_ref, payload_hash, policy_hash,
        metadata, run_at, parent_id, created_at, queued_xid)
    select p_org, i.job_id, i.result_id, h.job_type, h.category, h.queue, h.priority, h.max_attempts, h.project_id,
           i.subject_id, h.actor_type, h.actor_id, h.request_id, h.correlation_id, h.traceparent, i.idempotency_key,
           i.payload, i.payload_ref, case when i.stores_hash then i.payload_hash end, h.policy_hash, i.metadata, p_now, h.parent_id, p_now,
           pg_current_xact_id()
    from input i join head h on h.number = i.head
    where (select count(*) from seen) > 0;
end $$;
grant execute on function duly.write_lean_jobs to duly_engine;

-- Write one new job as a lean record; returns false, and writes nothing, if it may be a duplicate or has to be refused.
-- Lone jobs are enqueued most often, and mostly by processes that did nothing before: single rows instead of sets, and few
-- statements, because each has to be started and ended.
-- Locks: the ledger key.
create function duly.write_lean_job(
    p_org uuid, p_policy text, p_head duly.job_head, p_job uuid, p_result uuid, p_payload jsonb, p_key text,
    p_options json, p_wake boolean
) returns boolean
    language plpgsql
as $$
declare
    v_now timestamptz := duly.now();
    v_policy duly.policies;
    v_gated boolean;
    v_lane text;
    v_subject text := p_options ->> 'subject_id';
    v_ref text := p_options ->> 'payload_ref';
    v_text text := p_payload::text;
    v_hash text := coalesce(p_options ->> 'payload_hash', duly.payload_hash(p_payload, v_text));
begin
    -- A caller whose clock is far off would miss the partitions: its jobs get other ids.
    if p_job not between duly.uuid7_floor(v_now - interval '1 day') and duly.uuid7_floor(v_now + interval '1 day')
        or p_options ->> 'run_identity_hash' is not null or p_options ->> 'scheduled_for' is not null
        or not duly.check_payload(p_payload)
        or not duly.check_origin(p_head.job_type, p_head.actor_type, p_head.actor_id, p_head.request_id, p_head.correlation_id)
    then
        return false;
    end if;
    for i in 1..2 loop
        select p.policy_hash, p.queue, p.priority, p.category, p.max_attempts, p.ledger_ttl, exists (select from duly.gates)
        into v_policy.policy_hash, v_policy.queue, v_policy.priority, v_policy.category, v_policy.max_attempts,
             v_policy.ledger_ttl, v_gated
        from duly.layouts l
        left join (duly.policies p join duly.queues q on q.queue = p.queue)
            on p.policy_hash = duly.policy_hash(p_policy)
            and exists (select from duly.organizations o where o.org_id = p_org and o.status = 'active')
        where l.layout = 4;
        exit when v_policy.policy_hash is not null;
        if i = 2 or not found then
            return false;
        end if;
        perform duly.find_policies(array[p_policy]); -- the first job of a policy
    end loop;
    v_lane := v_policy.queue;
    if v_gated then
        if exists (select from duly.gates g where g.org_id = p_org and g.job_type = '' and g.max_waiting is not null) then
            return false;
        end if;
        v_lane := duly.lane(v_policy.queue, p_head.job_type);
    end if;
    with seen as (
        insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
        values (
            p_org, duly.key_hash(coalesce(p_key, duly.generated_key(
                duly.key_prefix(p_org, p_head.job_type, p_head.project_id), v_subject, v_hash))),
            p_job, v_now, v_now + v_policy.ledger_ttl)
        on conflict do nothing
        returning 1
    ), event as (
        insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
        select p_org, v_now, 'job.queued', 1, p_job, 1, array[p_job] from seen
    ), runnable as (
        insert into duly.ready (queue, org_id, rank, job_id, fresh)
        select v_lane, p_org, -v_policy.priority, p_job, true from seen
    )
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, project_id, subject_id, actor_type,
        actor_id, request_id, correlation_id, traceparent, idempotency_key, payload, payload_ref, payload_hash, policy_hash,
        metadata, run_at, parent_id, created_at, queued_xid)
    select
        p_org, p_job, p_result, p_head.job_type, v_policy.category, v_policy.queue, v_policy.priority,
        v_policy.max_attempts, p_head.project_id, v_subject, p_head.actor_type, p_head.actor_id, p_head.request_id,
        p_head.correlation_id, p_head.traceparent, p_key, p_payload, v_ref,
        case when v_ref is not null or octet_length(v_text) > 500 then v_hash end,
        v_policy.policy_hash, (p_options ->> 'metadata')::jsonb, v_now, p_head.parent_id, v_now, pg_current_xact_id()
    from seen;
    if found and p_wake then
        -- It names itself, so that an idle worker claims it without a search.
        perform pg_notify('duly_ready', concat_ws(' ', v_lane, p_org, -v_policy.priority, p_job));
        return true;
    end if;
    return found;
end $$;
grant execute on function duly.write_lean_job to duly_engine;

-- As before, but policies are the texts of a JSON array: they are stored once, and found by the hashes of their texts.
create function duly.enqueue_batch(
    p_org uuid, p_policies json, p_heads json, p_job_ids uuid[], p_result_ids uuid[], p_payloads jsonb,
    p_head_of integer[] default null, p_keys text[] default null, p_options json default null, p_wake boolean default true
) returns setof duly.job_written
    -- A plan that was made while a table was empty would read it from end to end when it is full.
    language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $$
declare
    v_now timestamptz := duly.now();
    v_first uuid := duly.uuid7_floor(v_now - interval '1 day');
    v_last uuid := duly.uuid7_floor(v_now + interval '1 day');
    v_lean boolean;
    v_policies duly.policies[];
    v_heads duly.job_head[];
begin
    if p_org is null or p_org is distinct from duly.current_org() then
        perform duly.check_session(p_org);
    end if;
    if cardinality(p_job_ids) = 1 and duly.write_lean_job(
        p_org, (p_policies -> 0)::text, json_populate_record(null::duly.job_head, p_heads -> 0), p_job_ids[1],
        p_result_ids[1], p_payloads -> 0, p_keys[1], p_options -> 0, p_wake)
    then
        return;
    end if;
    v_lean := cardinality(p_job_ids) > 1 and exists (select from duly.layouts l where l.layout = 4)
        and (p_options is null or not exists (
            select from json_to_recordset(p_options) as o(run_identity_hash text, scheduled_for text)
            where o.run_identity_hash is not null or o.scheduled_for is not null));
    v_heads := array(select h from json_populate_recordset(null::duly.job_head, p_heads) h);
    if v_lean and (select bool_and(j between v_first and v_last) from unnest(p_job_ids) j) then
        perform duly.check_org(p_org);
        perform duly.check_origin(h.job_type, h.actor_type, h.actor_id, h.request_id, h.correlation_id) from unnest(v_heads) h;
        v_policies := duly.find_policies(array(select p::text from json_array_elements(p_policies) p));
    end if;
    if cardinality(v_policies) = json_array_length(p_policies) then
        begin
            perform duly.write_lean_jobs(
                p_org, v_policies, v_heads, p_head_of, p_job_ids, p_result_ids, p_payloads, p_keys, p_options, v_now);
            perform duly.check_waiting(p_org, array[row(1, null, true)::duly.job_written]);
            if p_wake then
                perform pg_notify('duly_ready', '');
            end if;
            return;
        exception when unique_violation then
            null; -- duplicates: below
        end;
    end if;
    return query
    select w.* from duly.enqueue_jobs(p_org, p_policies::jsonb, (
        select json_agg(json_build_object(
            'job_id', j.job_id, 'result_id', j.result_id, 'job_type', h.job_type, 'policy', h.policy,
            'project_id', h.project_id, 'subject_id', o.subject_id, 'actor_type', h.actor_type, 'actor_id', h.actor_id,
            'request_id', h.request_id, 'correlation_id', h.correlation_id, 'traceparent', h.traceparent,
            'idempotency_key', j.idempotency_key, 'run_identity_hash', o.run_identity_hash, 'payload', j.payload,
            'payload_ref', o.payload_ref, 'payload_hash', o.payload_hash, 'metadata', o.metadata,
            'scheduled_for', o.scheduled_for, 'parent_id', h.parent_id) order by j.ord)
        from rows from (
            unnest(p_job_ids), unnest(p_result_ids), unnest(p_head_of), unnest(p_keys), jsonb_array_elements(p_payloads)
        ) with ordinality as j(job_id, result_id, head, idempotency_key, payload, ord)
        left join json_to_recordset(coalesce(p_options, '[]')) as o(
            ord bigint, subject_id text, run_identity_hash text, payload_ref text, payload_hash text, metadata json,
            scheduled_for text) using (ord)
        cross join lateral (select (v_heads[coalesce(j.head, 0) + 1]).*) h
    ), p_wake) w
    where not w.created or w.job_id is distinct from p_job_ids[w.ord];
end $$;
do $$
declare
    v_role regrole;
begin
    for v_role in
        select distinct a.grantee::regrole from pg_proc p cross join aclexplode(p.proacl) a
        where p.proname = 'enqueue_batch' and p.pronamespace = 'duly'::regnamespace and p.proargtypes[1] = 'jsonb'::regtype
          and a.grantee <> 0
    loop
        execute format('grant execute on function duly.enqueue_batch(
            uuid, json, json, uuid[], uuid[], jsonb, integer[], text[], json, boolean) to %s', v_role);
    end loop;
end $$;
drop function duly.enqueue_batch(uuid, jsonb, json, uuid[], uuid[], json, integer[], text[], json, boolean);
drop function duly.write_new_jobs;

-- The same for one job, whose values need no arrays and documents.
create function duly.enqueue_one(
    p_org uuid, p_policy text, p_job_type text, p_actor_type text, p_actor_id text, p_request_id text, p_correlation_id text,
    p_project uuid, p_traceparent text, p_parent uuid, p_job uuid, p_result uuid, p_payload jsonb, p_key text, p_options json,
    p_wake boolean
) returns setof duly.job_written
    language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $$
declare
    v_head duly.job_head := row(
        p_job_type, 0, p_actor_type, p_actor_id, p_request_id, p_correlation_id, p_project, p_traceparent, p_parent);
begin
    if p_org is null or p_org is distinct from duly.current_org() then
        perform duly.check_session(p_org);
    end if;
    if not duly.write_lean_job(p_org, p_policy, v_head, p_job, p_result, p_payload, p_key, p_options, p_wake) then
        return query select w.* from duly.enqueue_batch(
            p_org, json_build_array(p_policy::json), json_build_array(v_head), array[p_job], array[p_result],
            jsonb_build_array(p_payload), null, array[p_key],
            case when p_options is not null then json_build_array(p_options) end, p_wake) w;
    end if;
end $$;
grant execute on function duly.enqueue_one to duly_tenant;
grant create on schema duly to duly_engine;
alter function duly.enqueue_batch owner to duly_engine;
alter function duly.enqueue_one owner to duly_engine;
revoke create on schema duly from duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 8  The switch
--
-- Lean records are written once no worker is left that does not read them (layout 3), and all keys have moved (layout 4).
----------------------------------------------------------------------------------------------------------------------

drop trigger workers_layout on duly.workers;
create trigger workers_layout before insert on duly.workers for each row when (new.layout < 4)
    execute function duly.check_worker_layout();

-- Returns whether layouts 2 and 3 are used. The lock excludes a worker that registers at the same moment.
create or replace function duly.enable_plain_path() returns boolean
    language plpgsql
as $$
begin
    if exists (select from duly.layouts l where l.layout = 3) then
        return true;
    end if;
    perform pg_advisory_xact_lock(4846231972);
    insert into duly.layouts (layout)
    select n from generate_series(2, 3) n
    where not exists (
        select from duly.workers w
        where w.layout < n and greatest(w.heartbeat_at, w.started_at, w.stopped_at, w.lost_at) > duly.now() - interval '10 minutes')
    on conflict do nothing;
    return exists (select from duly.layouts l where l.layout = 3);
end $$;

-- Move up to `p_limit` keys from `ledger`, and switch on lean records when none is left there. Returns whether they are
-- used; null while workers of an earlier release may live.
create function duly.enable_lean_records(p_limit integer) returns boolean
    language plpgsql
as $$
begin
    if not exists (select from duly.layouts l where l.layout = 4) then
        if not duly.enable_plain_path() then
            return null;
        end if;
        if duly.take_over_keys(p_limit) > 0 or exists (select from duly.ledger) then
            return false;
        end if;
        insert into duly.layouts (layout) values (4) on conflict do nothing;
    end if;
    return true;
end $$;
grant execute on function duly.enable_lean_records to duly_engine;

-- At once in a database without workers and keys. As the engine: no policy shows the owner the keys.
set local role duly_engine;
select duly.enable_lean_records(0);
set local role duly_owner;
