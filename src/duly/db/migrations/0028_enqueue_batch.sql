-- Enqueue by arrays. `enqueue_jobs` took a JSON document of whole jobs, turned it into an array of composites and
-- unnested that four times: 12 of its 30 microseconds of a job. A batch now sends what its jobs share once, and ids and
-- payloads as arrays; nearly all batches are new jobs without options, which are plain inserts. `enqueue_jobs` writes the
-- others, and the jobs of clients of the previous release.

-- What the jobs of one call share.
create type duly.job_head as (
    job_type text, policy integer, actor_type text, actor_id text, request_id text, correlation_id text, project_id uuid,
    traceparent text, parent_id uuid
);

-- Write jobs that have no options and, as the caller found out by trying, no duplicates. Locks: ledger keys in their
-- order. The ledger first: a duplicate ends the statement before anything else is written.
create function duly.write_new_jobs(
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
        insert into duly.ready (queue, org_id, rank, job_id)
        select i.lane, p_org, -i.priority, i.job_id from input i
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
grant execute on function duly.write_new_jobs to duly_engine;

-- Enqueue many jobs of one org; every client calls this function. Ids and payloads come in the order of the jobs;
-- `p_head_of` and a head's policy are positions from 0 (without it, all jobs have the first head), `p_keys` has explicit
-- idempotency keys, `p_options` what few jobs have, with the position of the job as `ord`, from 1.
-- Returns only the jobs that differ from what the caller expects: duplicates, with the first job of their key, and
-- jobs that got another id, because the caller's clock is far off.
create function duly.enqueue_batch(
    p_org uuid, p_policies jsonb, p_heads json, p_job_ids uuid[], p_result_ids uuid[], p_payloads json,
    p_head_of integer[] default null, p_keys text[] default null, p_options json default null, p_wake boolean default true
) returns setof duly.job_written
    -- A plan that was made while a table was empty would read it from end to end when it is full.
    language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $$
declare
    v_now timestamptz := duly.now();
    v_first uuid := duly.uuid7_floor(v_now - interval '1 day');
    v_last uuid := duly.uuid7_floor(v_now + interval '1 day');
    v_policies duly.policy_read[];
    v_heads duly.job_head[];
begin
    v_heads := array(select h from json_populate_recordset(null::duly.job_head, p_heads) h);
    -- A caller whose clock is far off would miss the partitions: its jobs get other ids.
    if p_options is null and (select bool_and(j between v_first and v_last) from unnest(p_job_ids) j) then
        perform duly.check_org(p_org);
        perform duly.check_policies(p_policies);
        v_policies := duly.read_policies(p_policies);
        begin
            perform duly.write_new_jobs(
                p_org, v_policies, v_heads, p_head_of, p_job_ids, p_result_ids, p_payloads, p_keys, v_now);
            perform duly.check_waiting(p_org, array[row(1, null, true)::duly.job_written]);
            if p_wake then
                -- A lone job names itself, so that an idle worker claims it without a search.
                perform pg_notify('duly_ready', case when cardinality(p_job_ids) = 1
                    then concat_ws(' ', duly.lane((v_policies[1]).queue, (v_heads[1]).job_type), p_org,
                        -(v_policies[1]).priority, p_job_ids[1]) else '' end);
            end if;
            return;
        exception when unique_violation then
            null; -- duplicates: below
        end;
    end if;
    return query
    select w.* from duly.enqueue_jobs(p_org, p_policies, (
        select json_agg(json_build_object(
            'job_id', j.job_id, 'result_id', j.result_id, 'job_type', h.job_type, 'policy', h.policy,
            'project_id', h.project_id, 'subject_id', o.subject_id, 'actor_type', h.actor_type, 'actor_id', h.actor_id,
            'request_id', h.request_id, 'correlation_id', h.correlation_id, 'traceparent', h.traceparent,
            'idempotency_key', j.idempotency_key, 'run_identity_hash', o.run_identity_hash, 'payload', j.payload,
            'payload_ref', o.payload_ref, 'payload_hash', o.payload_hash, 'metadata', o.metadata,
            'scheduled_for', o.scheduled_for, 'parent_id', h.parent_id) order by j.ord)
        from rows from (
            unnest(p_job_ids), unnest(p_result_ids), unnest(p_head_of), unnest(p_keys), json_array_elements(p_payloads)
        ) with ordinality as j(job_id, result_id, head, idempotency_key, payload, ord)
        left join json_to_recordset(coalesce(p_options, '[]')) as o(
            ord bigint, subject_id text, run_identity_hash text, payload_ref text, payload_hash text, metadata json,
            scheduled_for text) using (ord)
        cross join lateral (select (v_heads[coalesce(j.head, 0) + 1]).*) h
    ), p_wake) w
    where not w.created or w.job_id is distinct from p_job_ids[w.ord];
end $$;
-- To all roles that may call `enqueue_jobs`: the roles of applications that enqueue in transactions of their own, too.
do $$
declare
    v_role regrole;
begin
    for v_role in
        select a.grantee::regrole from pg_proc p cross join aclexplode(p.proacl) a
        where p.oid = 'duly.enqueue_jobs(uuid, jsonb, json, boolean)'::regprocedure and a.grantee <> 0
    loop
        execute format('grant execute on function duly.enqueue_batch to %s', v_role);
    end loop;
end $$;
-- It writes as the engine: only that role's policies admit it, and only for the moment a role may own a new function.
grant create on schema duly to duly_engine;
alter function duly.enqueue_batch owner to duly_engine;
revoke create on schema duly from duly_engine;
