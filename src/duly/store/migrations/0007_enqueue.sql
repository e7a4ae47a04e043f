-- Enqueueing: one call writes record, ledger row, event and queue row of many jobs, or nothing.
-- The same function serves the Python client, foreign connections and plain SQL.

-- What the applications have declared; lets plain SQL enqueue by name.
create table duly.job_types (
    job_type text primary key,
    policy jsonb not null,
    payload_schema jsonb not null,
    published_at timestamptz not null default duly.now()
);
grant select on duly.job_types to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.job_types to duly_engine;

-- Errors of the contract carry the field in DETAIL and the fix in HINT.
create function duly.refuse(p_state text, p_field text, p_message text, p_fix text) returns void
    language plpgsql
as $$
begin
    raise exception using errcode = p_state, message = p_message, detail = p_field, hint = p_fix;
end $$;

-- The stable text of a payload: jsonb sorts the keys; instants are written in UTC.
create function duly.canonical(p_payload jsonb) returns text
    language plpgsql immutable parallel safe
as $$
declare
    stable text := p_payload::text;
    instant text;
begin
    for instant in
        select distinct m[1]
        from regexp_matches(stable, '"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d))"', 'g') m
    loop
        begin
            stable := replace(stable, '"' || instant || '"',
                '"' || to_char(instant::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"');
        exception when data_exception then
            null; -- only looks like an instant
        end;
    end loop;
    return stable;
end $$;

create function duly.stable_hash(p_text text) returns text
    language sql immutable parallel safe
    return encode(sha256(convert_to(p_text, 'UTF8')), 'hex');

-- A job of a batch, with everything derived that the caller may leave out.
create type duly.job_input as (
    ord bigint, job_id uuid, result_id uuid, job_type text, project_id uuid, subject_id text,
    actor_type text, actor_id text, request_id text, correlation_id text, traceparent text,
    idempotency_key text, run_identity_hash text, payload jsonb, payload_ref text, payload_hash text,
    policy jsonb, metadata jsonb, scheduled_for timestamptz, replay_of uuid, parent_id uuid
);

-- The policies of a batch are few: each is sent once, and a job names its own by number.
create function duly.parse_jobs(p_org uuid, p_policies jsonb, p_jobs json, p_now timestamptz)
returns setof duly.job_input
    language sql volatile
begin atomic
    select
        j.ord,
        -- A caller whose clock is far off would miss the partitions.
        case when j.job_id between duly.uuid7_floor(p_now - interval '1 day')
                               and duly.uuid7_floor(p_now + interval '1 day') then j.job_id else duly.uuid7() end,
        coalesce(j.result_id, duly.random_id()),
        j.job_type, j.project_id, j.subject_id, j.actor_type, j.actor_id, j.request_id, j.correlation_id,
        j.traceparent,
        coalesce(j.idempotency_key, concat_ws(':', j.job_type, p_org, j.project_id,
            case when j.subject_id is null and j.scheduled_for is null then h.payload_hash
            else duly.stable_hash(jsonb_build_array(h.payload_hash, j.subject_id, extract(epoch from j.scheduled_for))::text) end)),
        j.run_identity_hash, j.payload, j.payload_ref, h.payload_hash, p_policies -> j.policy, j.metadata, j.scheduled_for,
        j.replay_of, j.parent_id
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
    cross join lateral (
        -- Most payloads hold no instant and are their own canonical form: spare them the call.
        select coalesce(j.payload_hash, duly.stable_hash(case
            when j.payload::text like '%T__:__%' then duly.canonical(j.payload) else j.payload::text end)) as payload_hash
    ) h;
end;

-- A session that is bound to an org acts for no other, and a tenant without an org for none. The setting `role`
-- still tells who called when a definer function has taken another user.
create function duly.check_session(p_org uuid) returns void
    language plpgsql stable
as $$
begin
    if p_org is null then
        perform duly.refuse('DU422', 'org_id', 'missing', 'say for which org');
    end if;
    if duly.current_org() <> p_org or (duly.current_org() is null and current_setting('role') = 'duly_tenant') then
        perform duly.refuse('DU403', 'org_id', 'this session belongs to another org', 'act for the org of the session');
    end if;
end $$;

create function duly.check_org(p_org uuid) returns void
    language plpgsql stable
as $$
begin
    perform duly.check_session(p_org);
    if not exists (select from duly.organizations o where o.org_id = p_org and o.status = 'active') then
        perform duly.refuse('DU404', 'org_id', 'no active org of this id', 'create the org first');
    end if;
end $$;

-- Reserve one active run per identity and return whom the identities belong to now. Only the first job of a key
-- is ever written, so only that one reserves.
-- The upsert locks the row of a foreign run, so that it cannot end before we commit.
create function duly.reserve_runs(p_org uuid, p_jobs duly.job_input[], p_now timestamptz)
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
      and not exists (
          select from duly.ledger l
          where l.org_id = p_org and l.idempotency_key = j.idempotency_key and l.expires_at > p_now)
    order by j.job_type, j.run_identity_hash, j.ord
    on conflict (org_id, job_type, run_identity_hash) do update set job_id = a.job_id
    returning a.*;
end;

-- The answer to one job of a batch.
create type duly.job_written as (ord bigint, job_id uuid, created boolean);

-- Two enqueues of one key met between reservation and ledger: give back what was reserved for nothing,
-- and let the caller try again where an answer would name a job of this batch that was not written.
create function duly.settle_runs(p_org uuid, p_jobs duly.job_input[], p_written duly.job_written[]) returns void
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
create function duly.write_jobs(p_org uuid, p_jobs duly.job_input[], p_runs duly.active_runs[], p_now timestamptz)
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
        returning job_id, queue, priority, run_at, actor_type, actor_id
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
        select p_org, r.job_id, 1, 'job.queued', 'queued', 0, p_now, r.actor_type, r.actor_id from record r
    ), runnable as (
        insert into duly.ready (queue, org_id, rank, job_id)
        select r.queue, p_org, -r.priority, r.job_id from record r where r.run_at <= p_now
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

-- A policy is resolved by the client and believed within limits.
create function duly.check_policies(p_policies jsonb) returns void
    language plpgsql stable
as $$
declare
    v_queue text;
begin
    for v_queue in select p ->> 'queue' from jsonb_array_elements(p_policies) p loop
        if v_queue = 'q:deadletter' or not exists (select from duly.queues q where q.queue = v_queue) then
            perform duly.refuse('DU422', 'queue', format('%L takes no jobs', v_queue), 'name a queue of duly.queues');
        end if;
    end loop;
    if exists (
        select from jsonb_array_elements(p_policies) p
        where coalesce((p ->> 'ledger_ttl')::double precision, 0) <= 0
    ) then
        perform duly.refuse('DU422', 'ledger_ttl', 'not positive', 'give the seconds that a key is remembered');
    end if;
end $$;

-- The one door: many jobs of one org. Duplicates answer with the job that was first.
-- The memory keeps the sorts of a batch of thousands off the disk.
create function duly.enqueue_jobs(p_org uuid, p_policies jsonb, p_jobs json, p_wake boolean default true)
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
        return query select * from unnest(v_written);
    else
        return query select * from duly.write_jobs(p_org, v_jobs, null, v_now);
    end if;
    if p_wake then
        perform pg_notify('duly_ready', '');
    end if;
end $$;

-- What the Python client looks for, in short: telling names of texts, and well-known shapes.
create function duly.has_secret(p_payload jsonb) returns boolean
    language sql immutable parallel safe
    return p_payload::text ~* '["_.a-z0-9-](password|passwd|passphrase|secret|private[_-]?key|api[_-]?key|access[_-]?key|token|credentials?|authorization)": "[^"]'
        or p_payload::text ~ '-----BEGIN [A-Z ]*PRIVATE KEY-----|\m(AKIA|ASIA)[0-9A-Z]{16}\M|\mgh[pousr]_[A-Za-z0-9]{36}|\meyJ[A-Za-z0-9_-]{8,}[.]eyJ|\m[sr]k_live_|://[^/ :@]{1,200}:[^/ @]{1,200}@';

-- For people and other languages: one job, checked field by field.
create function duly.enqueue(
    org_id uuid,
    job_type text,
    payload jsonb default '{}',
    actor_type text default null,
    actor_id text default null,
    request_id text default null,
    correlation_id text default null,
    project_id uuid default null,
    subject_id text default null,
    idempotency_key text default null,
    run_identity_hash text default null,
    scheduled_for timestamptz default null,
    priority smallint default null,
    traceparent text default null,
    metadata jsonb default null
) returns uuid
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    v_policy jsonb := (select t.policy from duly.job_types t where t.job_type = enqueue.job_type);
    v_field text;
begin
    select f.name into v_field
    from (values ('org_id', org_id::text), ('job_type', job_type), ('payload', payload::text),
                 ('actor_type', actor_type), ('actor_id', actor_id), ('request_id', request_id)) f(name, value)
    where coalesce(f.value, '') = '' limit 1;
    if v_field is not null then
        perform duly.refuse('DU422', v_field, 'missing', 'every job says who asked for what; pass ' || v_field);
    end if;
    if v_policy is null then
        perform duly.refuse('DU404', 'job_type', format('no job type %L is published', job_type),
            'publish the application''s job types first');
    end if;
    if jsonb_typeof(payload) <> 'object' then
        perform duly.refuse('DU422', 'payload', 'not a JSON object', 'pass an object');
    end if;
    if actor_type not in ('user', 'api_key', 'system', 'worker', 'operator') then
        perform duly.refuse('DU422', 'actor_type', format('%L is no type of actor', actor_type),
            'one of user, api_key, system, worker, operator');
    end if;
    if priority not between -1000 and 1000 then
        perform duly.refuse('DU422', 'priority', 'out of range', 'use -1000 to 1000');
    end if;
    if duly.has_secret(payload) or duly.has_secret(metadata) then
        perform duly.refuse('DU422', case when duly.has_secret(payload) then 'payload' else 'metadata' end,
            'seems to hold a secret', 'store it elsewhere and pass a secret_ref');
    end if;
    if jsonb_path_exists(payload, '$.**{33 to last}') then
        perform duly.refuse('DU422', 'payload', 'nested deeper than 32', 'flatten it');
    end if;
    if octet_length(payload::text) > 262144 then
        perform duly.refuse('DU422', 'payload', 'larger than 262144 bytes', 'store it as a blob and pass its reference');
    end if;
    if scheduled_for is not null and not (v_policy ->> 'schedulable')::boolean then
        perform duly.refuse('DU422', 'scheduled_for', format('%L may not be delayed', job_type),
            'declare the job type with schedulable=True');
    end if;
    if priority is not null then
        v_policy := jsonb_set(v_policy, '{priority}', to_jsonb(priority));
    end if;
    return (
        select w.job_id from duly.enqueue_jobs(org_id, jsonb_build_array(v_policy), json_build_array(json_build_object(
            'job_id', duly.uuid7(), 'job_type', job_type, 'payload', payload, 'policy', 0,
            'actor_type', actor_type, 'actor_id', actor_id, 'request_id', request_id,
            'correlation_id', coalesce(correlation_id, request_id), 'project_id', project_id,
            'subject_id', subject_id, 'idempotency_key', idempotency_key, 'run_identity_hash', run_identity_hash,
            'scheduled_for', scheduled_for, 'traceparent', traceparent, 'metadata', metadata))) w
    );
end $$;

grant execute on function
    duly.refuse, duly.canonical, duly.stable_hash, duly.parse_jobs, duly.check_session, duly.check_org,
    duly.check_policies, duly.has_secret, duly.reserve_runs, duly.settle_runs, duly.write_jobs to duly_engine;
grant execute on function duly.enqueue_jobs, duly.enqueue to duly_engine, duly_tenant;
-- These write for callers who may not: they run as the engine. Rights are given while the owner still can.
grant create on schema duly to duly_engine;
alter function duly.enqueue_jobs owner to duly_engine;
alter function duly.enqueue owner to duly_engine;
revoke create on schema duly from duly_engine;
