-- A cheaper enqueue. A single job is written by one function without arrays, documents and composite values; the foreign key
-- of projects, whose trigger fired for every job, is a check in the functions that enqueue.

lock table duly.job_records, duly.key_ledger, duly.projects in access exclusive mode;

-- What a constraint says is compiled by every statement that writes the table. Statements write it as a constant, and
-- the doctor looks for rows that break it (check `rows`).
alter table duly.key_ledger drop constraint key_ledger_final_status_check;

-- Projects are never deleted, so that their jobs need no foreign key.
alter table duly.job_records drop constraint job_records_org_id_project_id_fkey;
revoke delete on duly.projects from duly_engine;

create function duly.check_project(p_org uuid, p_project uuid) returns void
    language plpgsql stable
as $$
begin
    if p_project is not null
        and not exists (select from duly.projects p where p.org_id = p_org and p.project_id = p_project)
    then
        raise exception using errcode = 'foreign_key_violation', message = 'no project of this id in this org',
            detail = 'project_id', hint = 'create the project first';
    end if;
end $$;
grant execute on function duly.check_project to duly_engine;

-- Write one new job as a lean record; returns false, and writes nothing, if it may be a duplicate or has to be refused, which
-- `enqueue_jobs` decides. Single jobs are enqueued most often, and mostly by processes that did nothing before: scalar
-- values instead of sets and records, and few statements, because each has to be started and ended.
-- Locks: the ledger key.
drop function duly.write_lean_job;
create function duly.write_lean_job(
    p_org uuid, p_policy text, p_job_type text, p_actor_type text, p_actor_id text, p_request_id text, p_correlation_id text,
    p_project uuid, p_traceparent text, p_parent uuid, p_job uuid, p_result uuid, p_payload jsonb, p_key text, p_options json,
    p_wake boolean
) returns boolean
    language plpgsql
as $$
declare
    v_now timestamptz := duly.now();
    v_policy uuid := duly.policy_hash(p_policy);
    v_text text := p_payload::text;
    v_hash text;
    v_subject text;
    v_ref text;
    v_metadata jsonb;
    v_layout smallint;
    v_queue text;
    v_lane text;
    v_priority smallint;
    v_category text;
    v_max_attempts smallint;
    v_expires_at timestamptz;
    v_gated boolean;
begin
    -- A caller whose clock is far off would miss the partitions: its jobs get other ids.
    if (p_job_type <> '' and p_actor_id <> '' and p_request_id <> '' and p_correlation_id <> ''
        and p_actor_type in ('user', 'api_key', 'system', 'worker', 'operator') and jsonb_typeof(p_payload) = 'object'
        and p_job between duly.uuid7_floor(v_now - interval '1 day') and duly.uuid7_floor(v_now + interval '1 day')) is not true
    then
        return false;
    end if;
    if p_options is not null then
        if p_options ->> 'run_identity_hash' is not null or p_options ->> 'scheduled_for' is not null then
            return false;
        end if;
        v_subject := p_options ->> 'subject_id';
        v_ref := p_options ->> 'payload_ref';
        v_hash := p_options ->> 'payload_hash';
        v_metadata := (p_options ->> 'metadata')::jsonb;
    end if;
    if v_hash is null then
        v_hash := duly.payload_hash(p_payload, v_text);
    end if;
    for i in 1..2 loop
        select l.layout, p.queue, p.priority, p.category, p.max_attempts, v_now + p.ledger_ttl, exists (select from duly.gates)
        into v_layout, v_queue, v_priority, v_category, v_max_attempts, v_expires_at, v_gated
        from duly.layouts l
        left join (duly.policies p join duly.queues q on q.queue = p.queue)
            on p.policy_hash = v_policy
            and exists (select from duly.organizations o where o.org_id = p_org and o.status = 'active')
        where l.layout = 4;
        exit when v_queue is not null;
        if i = 2 or v_layout is null then
            return false;
        end if;
        perform duly.find_policies(array[p_policy]); -- the first job of a policy
    end loop;
    v_lane := v_queue;
    if v_gated then
        if exists (select from duly.gates g where g.org_id = p_org and g.job_type = '' and g.max_waiting is not null) then
            return false;
        end if;
        v_lane := duly.lane(v_queue, p_job_type);
    end if;
    if p_project is not null then
        perform duly.check_project(p_org, p_project);
    end if;
    insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
    values (
        p_org, duly.key_hash(coalesce(p_key, duly.generated_key(
            duly.key_prefix(p_org, p_job_type, p_project), v_subject, v_hash))),
        p_job, v_now, v_expires_at)
    on conflict do nothing;
    if not found then
        return false;
    end if;
    insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
    values (p_org, v_now, 'job.queued', 1, p_job, 1, array[p_job]);
    insert into duly.ready (queue, org_id, rank, job_id, fresh) values (v_lane, p_org, -v_priority, p_job, true);
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, project_id, subject_id, actor_type,
        actor_id, request_id, correlation_id, traceparent, idempotency_key, payload, payload_ref, payload_hash, policy_hash,
        metadata, run_at, parent_id, created_at, queued_xid)
    values (
        p_org, p_job, p_result, p_job_type, v_category, v_queue, v_priority, v_max_attempts, p_project, v_subject, p_actor_type,
        p_actor_id, p_request_id, p_correlation_id, p_traceparent, p_key, p_payload, v_ref,
        case when v_ref is not null or octet_length(v_text) > 500 then v_hash end, v_policy, v_metadata, v_now, p_parent, v_now,
        pg_current_xact_id());
    if p_wake then
        -- It names itself, so that an idle worker claims it without a search.
        perform pg_notify('duly_ready', concat_ws(' ', v_lane, p_org, -v_priority, p_job));
    end if;
    return true;
end $$;
grant execute on function duly.write_lean_job to duly_engine;

grant create on schema duly to duly_engine;
set local role duly_engine;

-- As before, but the projects are checked.
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
    perform duly.check_project(p_org, j.project_id) from (select distinct x.project_id from unnest(v_jobs) x) j;
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

-- As before, but the projects are checked, and a single job has scalar values.
create or replace function duly.enqueue_batch(
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
    if cardinality(p_job_ids) = 1 and (
        select duly.write_lean_job(
            p_org, (p_policies -> 0)::text, h.job_type, h.actor_type, h.actor_id, h.request_id, h.correlation_id, h.project_id,
            h.traceparent, h.parent_id, p_job_ids[1], p_result_ids[1], p_payloads -> 0, p_keys[1], p_options -> 0, p_wake)
        from json_populate_record(null::duly.job_head, p_heads -> 0) h)
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
        perform duly.check_origin(h.job_type, h.actor_type, h.actor_id, h.request_id, h.correlation_id),
                duly.check_project(p_org, h.project_id)
        from unnest(v_heads) h;
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

drop function duly.enqueue_one;
set local role duly_owner;

-- The same for one job, whose values need no arrays and documents. Returns null if it was written as specified.
create function duly.enqueue_one(
    p_org uuid, p_policy text, p_job_type text, p_actor_type text, p_actor_id text, p_request_id text, p_correlation_id text,
    p_project uuid, p_traceparent text, p_parent uuid, p_job uuid, p_result uuid, p_payload jsonb, p_key text, p_options json,
    p_wake boolean
) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $$
begin
    if p_org is null or p_org is distinct from duly.current_org() then
        perform duly.check_session(p_org);
    end if;
    if duly.write_lean_job(
        p_org, p_policy, p_job_type, p_actor_type, p_actor_id, p_request_id, p_correlation_id, p_project, p_traceparent,
        p_parent, p_job, p_result, p_payload, p_key, p_options, p_wake)
    then
        return null;
    end if;
    return (
        select to_json(w) from duly.enqueue_batch(
            p_org, json_build_array(p_policy::json), json_build_array(row(
                p_job_type, 0, p_actor_type, p_actor_id, p_request_id, p_correlation_id, p_project, p_traceparent,
                p_parent)::duly.job_head),
            array[p_job], array[p_result], jsonb_build_array(p_payload), null, array[p_key],
            case when p_options is not null then json_build_array(p_options) end, p_wake) w);
end $$;
grant execute on function duly.enqueue_one to duly_tenant;
alter function duly.enqueue_one owner to duly_engine;
revoke create on schema duly from duly_engine;
