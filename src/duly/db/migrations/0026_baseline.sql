-- The schema `duly`, as of 0.9.0. It replaces the migrations 0001 to 0026; later changes follow in files of their own.
--
--    1  Roles, clock, ids              9  Views                         17  Audit trail
--    2  Isolation                     10  Workers                       18  Webhooks
--    3  Partitions                    11  Enqueueing                    19  Notifications
--    4  Organizations                 12  Canceling                     20  Alerts and statistics
--    5  Queues and limits             13  Dead letters and replays      21  Blobs and retention
--    6  Jobs                          14  Stale jobs                    22  Of earlier releases
--    7  Events and logs               15  Failure callbacks
--    8  Results                       16  Schedules
--
-- Each table is followed by its indexes, its row level security and its grants; each function by its grants.

----------------------------------------------------------------------------------------------------------------------
-- 1  Roles, clock, ids
----------------------------------------------------------------------------------------------------------------------

-- Roles are shared by all databases of a cluster: another database may have created them already.
do $$
declare
    role_name text;
begin
    foreach role_name in array
        array['duly_owner', 'duly_engine', 'duly_tenant', 'duly_operator', 'duly_auditor']
    loop
        begin
            if not exists (select from pg_catalog.pg_roles where rolname = role_name) then
                execute format('create role %I nologin noinherit', role_name);
            end if;
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
    if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
        execute format('grant duly_owner, duly_engine, duly_tenant, duly_operator to %I', current_user);
    end if;
    -- The owner creates functions that write for callers without the right to, and changes their owner to the engine.
    if not pg_has_role('duly_owner', 'duly_engine', 'member') then
        grant duly_engine to duly_owner;
    end if;
    -- The engine can take the role of the auditor, which may append to the audit trail of an org and nothing else: it
    -- computes descriptions of changes.
    if not pg_has_role('duly_engine', 'duly_auditor', 'member') then
        grant duly_auditor to duly_engine;
    end if;
end $$;

create schema duly authorization duly_owner;
-- From here on everything belongs to the owner.
set local role duly_owner;
grant usage on schema duly to duly_engine, duly_tenant, duly_operator, duly_auditor;
-- Changing the owner of a function to the engine needs this right; the last line revokes it.
grant create on schema duly to duly_engine;
-- By default PUBLIC may execute a new function; here every right is granted explicitly.
alter default privileges revoke execute on functions from public;

create table duly.schema_versions (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
);
grant select on duly.schema_versions to duly_engine;

-- The only clock is that of the database. Tests can set it.
create function duly.now() returns timestamptz
    language sql stable parallel safe
    return coalesce(nullif(current_setting('duly.now', true), '')::timestamptz, now());

-- The org of this transaction, or null outside of one.
create function duly.current_org() returns uuid
    language sql stable parallel safe
    return nullif(current_setting('duly.org_id', true), '')::uuid;

-- The smallest uuid v7 of an instant: a bound for partitions, and for time ranges of job ids.
create function duly.uuid7_floor(at timestamptz) returns uuid
    language sql immutable parallel safe
    return (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid;

create function duly.uuid7() returns uuid
    language sql volatile parallel safe
    return overlay(
        overlay(gen_random_uuid()::text placing '7' from 15)
        placing left(duly.uuid7_floor(clock_timestamp())::text, 13) from 1
    )::uuid;

create function duly.uuid7_time(id uuid) returns timestamptz
    language sql immutable parallel safe
    return to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0);

-- 128 random bits: two random uuids, without the fixed version and variant digits.
create function duly.random_id() returns uuid
    language sql volatile parallel safe
    return (
        left(replace(gen_random_uuid()::text, '-', ''), 12)
        || right(replace(gen_random_uuid()::text, '-', ''), 15)
        || right(replace(gen_random_uuid()::text, '-', ''), 5)
    )::uuid;

grant execute on function
    duly.now(), duly.current_org(), duly.uuid7_floor(timestamptz), duly.uuid7(), duly.uuid7_time(uuid),
    duly.random_id() to duly_engine, duly_tenant, duly_operator;
grant execute on function duly.now(), duly.current_org(), duly.uuid7(), duly.uuid7_floor(timestamptz) to duly_auditor;

-- Errors of the contract carry the field in DETAIL and the fix in HINT.
create function duly.refuse(p_state text, p_field text, p_message text, p_fix text) returns void
    language plpgsql
as $$
begin
    raise exception using errcode = p_state, message = p_message, detail = p_field, hint = p_fix;
end $$;
grant execute on function duly.refuse to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 2  Isolation
--
-- Row level security on every tenant table. A tenant reads the rows of its org, and writes through functions only. The
-- engine works for all orgs, but cannot change records, events, results and audit entries. An operator reads all.
----------------------------------------------------------------------------------------------------------------------

-- Called for each table with an org, also by later migrations.
create function duly.isolate(p_table regclass) returns void
    language plpgsql
as $$
begin
    execute format('alter table %s enable row level security', p_table);
    execute format('alter table %s force row level security', p_table);
    -- The subselect is evaluated once per statement, so that the primary key serves the comparison.
    execute format('create policy tenant_isolation on %s to duly_tenant
        using (org_id = (select duly.current_org())) with check (org_id = (select duly.current_org()))', p_table);
    execute format('create policy engine_works on %s to duly_engine using (true) with check (true)', p_table);
    execute format('create policy operator_reads on %s for select to duly_operator using (true)', p_table);
end $$;

-- Partitions are accessed through their parent only: on a partition itself no policy admits any role but the owner.
create function duly.lock_partition(p_table text) returns void
    language plpgsql
as $$
begin
    execute format('alter table duly.%I enable row level security', p_table);
    execute format('alter table duly.%I force row level security', p_table);
    execute format('create policy owner_moves on duly.%I to duly_owner using (true) with check (true)', p_table);
end $$;

----------------------------------------------------------------------------------------------------------------------
-- 3  Partitions
--
-- Partitions are created ahead of time and dropped by retention. A default partition takes rows outside of all ranges;
-- they move to their own partition when it is created.
----------------------------------------------------------------------------------------------------------------------

create table duly.partitioned_tables (
    parent text primary key,
    key_column text not null,
    key_kind text not null check (key_kind in ('uuid7', 'time')),
    step text not null check (step in ('week', 'month')),
    ahead integer not null check (ahead > 0),
    storage text not null default '',
    -- The column of each table that dates a row. The rows of a job are dated by its id, even if they are written much
    -- later.
    dated_in text not null,
    dated_by text not null,
    names_blobs boolean not null default false
);
grant select on duly.partitioned_tables to duly_engine;

insert into duly.partitioned_tables values
    ('job_records', 'job_id', 'uuid7', 'month', 3, '', 'job_states', 'finished_at', true),
    ('job_states', 'job_id', 'uuid7', 'month', 3, 'with (fillfactor = 50)', 'job_states', 'finished_at', false),
    ('event_log', 'job_id', 'uuid7', 'week', 8, '', 'event_log', 'occurred_at', false),
    ('job_logs', 'job_id', 'uuid7', 'week', 8, '', 'job_logs', 'logged_at', false),
    ('result_partials', 'job_id', 'uuid7', 'week', 8, '', 'result_partials', 'created_at', true),
    ('result_finals', 'job_id', 'uuid7', 'month', 3, '', 'result_finals', 'created_at', true),
    ('schedule_ticks', 'tick_at', 'time', 'month', 3, '', 'schedule_ticks', 'tick_at', false),
    ('audit_entries', 'occurred_at', 'time', 'month', 3, '', 'audit_entries', 'occurred_at', false),
    ('webhook_deliveries', 'job_id', 'uuid7', 'week', 8, '', 'webhook_deliveries', 'created_at', false);

create function duly.partition_bound(key_kind text, at timestamptz) returns text
    language sql immutable
    return quote_literal(case key_kind when 'uuid7' then duly.uuid7_floor(at)::text else at::text end);

-- Runs as the owner: no other role may create tables and move rows between partitions.
create function duly.make_partition(p_parent text, p_from timestamptz, p_to timestamptz) returns boolean
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
    execute format('create table duly.%I (like duly.%I including defaults including constraints) %s',
        child, p_parent, t.storage);
    execute format('with moved as (delete from duly.%I where %I >= %s and %I < %s returning *)
        insert into duly.%I select * from moved', p_parent || '_default', t.key_column, low, t.key_column, high, child);
    execute format('alter table duly.%I attach partition duly.%I for values from (%s) to (%s)',
        p_parent, child, low, high);
    perform duly.lock_partition(child);
    return true;
end $$;

-- Returns the number of created partitions. One process at a time. It gives up its lock request after a short time,
-- because readers queue behind it; partitions are created far ahead, so the next run is early enough.
create function duly.ensure_partitions() returns integer
    language sql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s'
begin atomic
    select pg_advisory_xact_lock(4846231971);
    select count(*) filter (
        where duly.make_partition(p.parent, f.at at time zone 'UTC', (f.at + s.step) at time zone 'UTC')
    )::integer
    from duly.partitioned_tables p
    cross join lateral (select ('1 ' || p.step)::interval as step) s
    cross join generate_series(-1, p.ahead) n
    -- In UTC without a time zone, so that the months do not depend on the session.
    cross join lateral (select date_trunc(p.step, duly.now() at time zone 'UTC') + s.step * n as at) f;
end;
grant execute on function duly.ensure_partitions() to duly_engine;

-- Every partition with its range; the default partition has none.
create view duly.partitions as
select t.parent, c.relname::text as partition, r.starts_at, r.ends_at, pg_total_relation_size(c.oid) as bytes
from duly.partitioned_tables t
join pg_catalog.pg_inherits i on i.inhparent = format('duly.%I', t.parent)::regclass
join pg_catalog.pg_class c on c.oid = i.inhrelid
cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), $$FROM \('(.+)'\) TO \('(.+)'\)$$) b
cross join lateral (
    select case t.key_kind when 'uuid7' then duly.uuid7_time(b[1]::uuid) else b[1]::timestamptz end as starts_at,
           case t.key_kind when 'uuid7' then duly.uuid7_time(b[2]::uuid) else b[2]::timestamptz end as ends_at
) r;
grant select on duly.partitions to duly_engine, duly_operator;

----------------------------------------------------------------------------------------------------------------------
-- 4  Organizations
--
-- Organizations, their projects, members and API keys, and browser sessions.
----------------------------------------------------------------------------------------------------------------------

create table duly.organizations (
    org_id uuid primary key,
    name text not null check (name <> ''),
    status text not null default 'active' check (status in ('active', 'suspended')),
    created_at timestamptz not null default duly.now(),
    updated_at timestamptz not null default duly.now()
);
-- The org of maintenance jobs: every job has an org.
insert into duly.organizations (org_id, name) values ('00000000-0000-7000-8000-00000000d017', 'Duly');
select duly.isolate('duly.organizations');
grant select on duly.organizations to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.organizations to duly_engine;

create table duly.projects (
    org_id uuid not null references duly.organizations,
    project_id uuid not null,
    name text not null check (name <> ''),
    created_at timestamptz not null default duly.now(),
    primary key (org_id, project_id)
);
select duly.isolate('duly.projects');
grant select on duly.projects to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.projects to duly_engine;

create table duly.members (
    org_id uuid not null references duly.organizations,
    user_id text not null check (user_id <> ''),
    role text not null check (role in ('viewer', 'operator', 'admin')),
    created_at timestamptz not null default duly.now(),
    primary key (org_id, user_id)
);
select duly.isolate('duly.members');
grant select on duly.members to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.members to duly_engine;

create table duly.api_keys (
    org_id uuid not null references duly.organizations,
    key_id text not null,
    name text not null,
    environment text not null,
    secret_hash bytea not null,
    scopes text[] not null,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    primary key (org_id, key_id)
);
-- Authentication by key happens before the org is known.
create index api_keys_by_key on duly.api_keys (key_id);
select duly.isolate('duly.api_keys');
grant select (org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at)
    on duly.api_keys to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.api_keys to duly_engine;

-- Browser sessions. A session belongs to an API key, a member or an operator, and has the rights that they have now.
-- Operators who sign in by a token get a session of one hour in the system org, which has no members.
-- There are few sessions, and they live for hours: a sequential scan is fine.
create table duly.sessions (
    org_id uuid not null references duly.organizations,
    -- The hash of a token with 256 random bits; only the browser has the token.
    session_hash bytea not null,
    key_id text,
    user_id text,
    created_at timestamptz not null default duly.now(),
    expires_at timestamptz not null,
    operator_id text,
    primary key (org_id, session_hash),
    foreign key (org_id, key_id) references duly.api_keys on delete cascade,
    -- A member who is removed and added again signs in again.
    foreign key (org_id, user_id) references duly.members on delete cascade,
    constraint sessions_stand_for_one check (num_nonnulls(key_id, user_id, operator_id) = 1),
    constraint sessions_of_operators check (operator_id is null or org_id = '00000000-0000-7000-8000-00000000d017')
);
-- Authentication by session happens before the org is known.
create index sessions_by_hash on duly.sessions (session_hash);
create index sessions_expiry on duly.sessions (expires_at);
create index sessions_of_member on duly.sessions (org_id, user_id) where user_id is not null;
select duly.isolate('duly.sessions');
grant select (org_id, key_id, user_id, created_at, expires_at, operator_id) on duly.sessions to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.sessions to duly_engine;

-- A transaction that is bound to an org may not act for another one, and a tenant without an org for none. The setting
-- `role` still names the caller while a security definer function runs as another user.
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
grant execute on function duly.check_session, duly.check_org to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 5  Queues and limits
----------------------------------------------------------------------------------------------------------------------

create table duly.queues (
    queue text primary key check (queue ~ '^q:[a-z][a-z0-9_-]{0,47}$'),
    weight smallint not null default 1 check (weight > 0),
    paused_at timestamptz,
    paused_by text,
    pause_reason text,
    created_at timestamptz not null default duly.now(),
    -- Jobs behind a pause count as waiting from its end on.
    resumed_at timestamptz,
    -- The thresholds of its alerts; null: as in the settings.
    alert_depth integer check (alert_depth > 0),
    alert_wait interval check (alert_wait > interval '0')
);
grant select on duly.queues to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.queues to duly_engine;

insert into duly.queues (queue, weight) values
    ('q:critical', 8), ('q:default', 4), ('q:notifications', 2), ('q:planning', 2),
    ('q:exports', 2), ('q:maintenance', 1), ('q:deadletter', 1);

-- Gates hold the limits and pauses of an org, of a job type, or of a job type of an org. A pause, the limit of running
-- jobs and the rate of starts keep jobs queued; the limit of queued jobs refuses new ones.
create table duly.gates (
    -- The zero uuid stands for every org, the empty text for every job type.
    org_id uuid not null,
    job_type text not null,
    max_running integer check (max_running >= 0),
    starts_per_second double precision check (starts_per_second > 0),
    burst integer check (burst > 0),
    max_waiting integer check (max_waiting >= 0),
    paused_at timestamptz,
    paused_by text,
    pause_reason text,
    running integer not null default 0 check (running >= 0),
    tokens double precision not null default 0,
    refilled_at timestamptz not null default '-infinity',
    updated_at timestamptz not null default duly.now(),
    resumed_at timestamptz,
    primary key (org_id, job_type),
    check (job_type <> '' or org_id <> '00000000-0000-0000-0000-000000000000'),
    -- Waiting jobs are counted by org.
    check (max_waiting is null or job_type = ''),
    check ((starts_per_second is null) = (burst is null)),
    check ((paused_at is null) = (paused_by is null))
) with (fillfactor = 50);
create index gates_by_type on duly.gates (job_type) where job_type <> '';
select duly.isolate('duly.gates');
grant select on duly.gates to duly_tenant, duly_operator;
grant select, insert, update on duly.gates to duly_engine;

-- The jobs of a type with a gate wait in a lane of their own, `<queue>#<job type>`, so that a closed gate never stands
-- between a claim and other jobs. The lane stays when the gate opens again.
create view duly.lanes with (security_invoker = true) as
    select distinct g.job_type from duly.gates g where g.job_type <> '';
grant select on duly.lanes to duly_engine;

create function duly.lane(p_queue text, p_job_type text) returns text
    language sql stable parallel safe
    return case when exists (select from duly.gates g where g.job_type = p_job_type and g.job_type <> '')
        then p_queue || '#' || p_job_type else p_queue end;

-- The tokens in a bucket now: it fills at its rate, up to its burst.
create function duly.gate_tokens(g duly.gates) returns double precision
    language sql stable parallel safe
    return case when g.starts_per_second is not null then
        case when g.refilled_at = '-infinity' then g.burst
        else least(g.burst, g.tokens + g.starts_per_second
            * greatest(extract(epoch from duly.now() - g.refilled_at), 0)::double precision) end end;

-- The number of jobs that may start now.
create function duly.gate_room(g duly.gates) returns integer
    language sql stable parallel safe
    return case when g.paused_at is not null then 0 else greatest(0, least(
        coalesce(g.max_running - g.running, 1000000),
        coalesce(floor(duly.gate_tokens(g))::integer, 1000000))) end;

-- Decrement the counters of gates by the jobs that ended. A function of its own, because a settle statement that waited
-- for a row may find it counted by a gate that is newer than its snapshot. Locks: gates in the order of their keys.
create function duly.leave_gates(p_orgs uuid[], p_job_types text[], p_counts bigint[]) returns void
    language plpgsql
as $$
begin
    perform from duly.gates g join unnest(p_orgs, p_job_types) k(org_id, job_type) using (org_id, job_type)
        order by g.org_id, g.job_type for update of g;
    update duly.gates g set running = g.running - k.n
    from unnest(p_orgs, p_job_types, p_counts) k(org_id, job_type, n)
    where g.org_id = k.org_id and g.job_type = k.job_type;
end $$;

grant execute on function duly.lane, duly.gate_tokens, duly.gate_room, duly.leave_gates to duly_engine;

-- The retry budget of an org and a dependency, as the time up to which it is spent.
create table duly.retry_budgets (
    org_id uuid not null,
    dependency text not null check (dependency <> ''),
    spent_until timestamptz not null,
    primary key (org_id, dependency)
) with (fillfactor = 50);
select duly.isolate('duly.retry_budgets');
grant select on duly.retry_budgets to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.retry_budgets to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 6  Jobs
--
-- A job is split: an immutable record, a thin mutable state, and a row in `ready` or `scheduled` while it waits. Records
-- and states are partitioned by their time-ordered id.
----------------------------------------------------------------------------------------------------------------------

-- The declared job types, so that plain SQL can enqueue by name.
create table duly.job_types (
    job_type text primary key,
    policy jsonb not null,
    payload_schema jsonb not null,
    published_at timestamptz not null default duly.now()
);
grant select on duly.job_types to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.job_types to duly_engine;

create table duly.job_records (
    org_id uuid not null,
    job_id uuid not null,
    result_id uuid not null,
    job_type text not null check (job_type <> ''),
    category text not null,
    queue text not null,
    priority smallint not null,
    max_attempts smallint not null check (max_attempts > 0),
    project_id uuid,
    subject_id text,
    actor_type text not null check (actor_type in ('user', 'api_key', 'system', 'worker', 'operator')),
    actor_id text not null check (actor_id <> ''),
    request_id text not null check (request_id <> ''),
    correlation_id text not null check (correlation_id <> ''),
    traceparent text,
    idempotency_key text not null check (idempotency_key <> ''),
    run_identity_hash text,
    payload jsonb not null check (jsonb_typeof(payload) = 'object'),
    payload_ref text,
    payload_hash text not null,
    policy jsonb not null,
    metadata jsonb,
    scheduled_for timestamptz,
    run_at timestamptz not null,
    replay_of uuid,
    parent_id uuid,
    created_at timestamptz not null,
    -- Equal for equal policies: a claim returns each policy once. Null in the records of releases before 0.4.
    policy_hash uuid,
    primary key (org_id, job_id),
    foreign key (org_id, project_id) references duly.projects
) partition by range (job_id);
create index job_records_by_result on duly.job_records (org_id, result_id);
create index job_records_by_subject on duly.job_records (org_id, subject_id, job_id) where subject_id is not null;
-- Few rows name a blob, so this is small.
create index job_records_by_blob on duly.job_records (org_id, payload_ref) where payload_ref is not null;
select duly.isolate('duly.job_records');
grant select on duly.job_records to duly_tenant, duly_operator;
grant select, insert on duly.job_records to duly_engine;

-- Created by the first claim, cancel or retry; a job without a state is queued, with attempt 0 and event 1.
create table duly.job_states (
    org_id uuid not null,
    job_id uuid not null,
    status text not null check (status in ('queued', 'running', 'partial', 'completed', 'failed', 'canceled')),
    outcome text not null,
    attempt integer not null default 0,
    returned integer not null default 0,
    event_seq integer not null default 1,
    result_seq integer not null default 0,
    partial_count integer not null default 0,
    error_count integer not null default 0,
    progress_percent real not null default 0 check (progress_percent between 0 and 100),
    run_at timestamptz not null,
    worker_id uuid,
    attempt_started_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    updated_at timestamptz not null,
    cancel_requested_at timestamptz,
    canceled_by text check (canceled_by in ('user', 'system', 'worker')),
    cancel_reason text,
    retryable boolean,
    error_code text,
    error_class text,
    error_message text,
    summary_counts jsonb,
    failure_summary jsonb,
    context jsonb,
    -- The gates that counted the running job, as bits: 1 of its org, 2 of its type, 4 of its type in its org.
    counted smallint not null default 0,
    primary key (org_id, job_id),
    check (
        (status in ('queued', 'running', 'partial') and outcome = 'pending' and finished_at is null)
        or (status = 'completed' and outcome in ('succeeded', 'partially_succeeded') and finished_at is not null
            and progress_percent = 100)
        or (status = 'failed' and outcome in ('failed', 'blocked', 'dead') and finished_at is not null
            and error_code is not null and error_message is not null and retryable is not null)
        or (status = 'canceled' and outcome = 'canceled' and finished_at is not null
            and canceled_by is not null and cancel_reason is not null)
    )
) partition by range (job_id);
-- Only ended jobs are indexed by status: the updates of a living job stay heap-only.
create index job_states_ended on duly.job_states (org_id, status, finished_at desc) where finished_at is not null;
select duly.isolate('duly.job_states');
grant select on duly.job_states to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.job_states to duly_engine;

-- The jobs that can be claimed; the primary key is the order of claims.
create table duly.ready (
    queue text not null,
    org_id uuid not null,
    rank smallint not null,
    job_id uuid not null,
    primary key (queue, org_id, rank, job_id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
select duly.isolate('duly.ready');
grant select on duly.ready to duly_operator;
grant select, insert, update, delete on duly.ready to duly_engine;

-- Delayed jobs; the primary key is the order of promotion.
create table duly.scheduled (
    run_at timestamptz not null,
    org_id uuid not null,
    job_id uuid not null,
    queue text not null,
    rank smallint not null,
    primary key (run_at, org_id, job_id)
    -- Rows are deleted at the front, where the next promotion starts: behind 200,000 dead rows it took three times as
    -- long, and vacuuming them 20 ms. The other tables with many deletes are read by key, and small.
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
-- For lists of the delayed jobs of an org, which would otherwise read those of all orgs. It costs one entry of about 50
-- bytes for each delayed job and each waiting retry, and nothing for a job that can run at once.
create index scheduled_by_org on duly.scheduled (org_id, job_id);
select duly.isolate('duly.scheduled');
grant select on duly.scheduled to duly_operator;
grant select, insert, update, delete on duly.scheduled to duly_engine;

-- One active run per identity.
create table duly.active_runs (
    org_id uuid not null,
    job_type text not null,
    run_identity_hash text not null,
    job_id uuid not null,
    primary key (org_id, job_type, run_identity_hash)
);
select duly.isolate('duly.active_runs');
grant select on duly.active_runs to duly_operator;
grant select, insert, update, delete on duly.active_runs to duly_engine;

-- Deduplication over time; outlives the job. Its status is read from the job until the job is pruned.
create table duly.ledger (
    org_id uuid not null,
    idempotency_key text not null,
    job_id uuid not null,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null,
    final_status text check (final_status in ('succeeded', 'failed', 'dead')),
    result_ref text,
    error_ref text,
    primary key (org_id, idempotency_key)
    -- The table is large, and its oldest rows are deleted: their space is reused soon, which keeps rows in the order of
    -- time, and new block ranges are summarised early.
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
-- Rows are inserted in the order of time: a block range index finds expired rows, and costs writers nothing.
create index ledger_expiry on duly.ledger using brin (expires_at);
select duly.isolate('duly.ledger');
grant select on duly.ledger to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.ledger to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 7  Events and logs
----------------------------------------------------------------------------------------------------------------------

create table duly.event_log (
    org_id uuid not null,
    job_id uuid not null,
    event_seq integer not null check (event_seq > 0),
    event_type text not null,
    status text not null,
    attempt integer not null,
    occurred_at timestamptz not null,
    actor_type text not null,
    actor_id text not null,
    payload jsonb,
    -- Feeds are ordered by transaction, never by a sequence, whose order is not that of commits.
    commit_xid xid8 not null default pg_current_xact_id(),
    primary key (org_id, job_id, event_seq)
) partition by range (job_id);
-- Frequent events are found by time alone; rare ones also by their type.
create index event_log_by_time on duly.event_log using brin (occurred_at);
create index event_log_rare on duly.event_log (event_type, occurred_at) where event_type in (
    'job.retried', 'job.failed', 'job.deadlettered', 'job.cancel_requested', 'job.canceled', 'job.lease_lost',
    'job.reconciled', 'job.replayed');
create index event_log_by_commit on duly.event_log (commit_xid);
select duly.isolate('duly.event_log');
grant select on duly.event_log to duly_tenant, duly_operator;
grant select, insert on duly.event_log to duly_engine;

-- The last transaction of each dropped partition of events: a reader behind it has missed events, and gets an error.
create table duly.event_drops (
    drop_id bigint generated always as identity primary key,
    dropped_through xid8 not null,
    dropped_at timestamptz not null default duly.now()
);
grant select on duly.event_drops to duly_engine, duly_operator;

-- Job logs, retained as long as events; the worker limits the lines of each attempt.
create table duly.job_logs (
    org_id uuid not null,
    job_id uuid not null,
    attempt integer not null,
    line_seq integer not null check (line_seq > 0),
    logged_at timestamptz not null,
    level text not null check (level in ('debug', 'info', 'warning', 'error', 'critical')),
    message text not null,
    fields jsonb,
    primary key (org_id, job_id, attempt, line_seq)
) partition by range (job_id);
select duly.isolate('duly.job_logs');
grant select on duly.job_logs to duly_tenant, duly_operator;
grant select, insert on duly.job_logs to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 8  Results
----------------------------------------------------------------------------------------------------------------------

-- Partial and final results have different retention periods, so they are in different partitions. A job has one final
-- result, found by the job, and partial results, found by their number: a common key would cost a second index.
create table duly.result_snapshots (
    org_id uuid not null,
    job_id uuid not null,
    result_kind text not null check (result_kind in ('partial', 'final')),
    result_seq integer not null check (result_seq > 0),
    schema_version integer not null default 1,
    chunk_key text,
    payload jsonb,
    payload_ref text,
    summary jsonb,
    created_at timestamptz not null
) partition by list (result_kind);
create table duly.result_partials partition of duly.result_snapshots for values in ('partial') partition by range (job_id);
create table duly.result_finals partition of duly.result_snapshots for values in ('final') partition by range (job_id);
create unique index result_finals_once on duly.result_finals (org_id, job_id);
create index result_snapshots_by_time on duly.result_snapshots using brin (created_at);
-- Few rows name a blob, so this is small.
create index result_snapshots_by_blob on duly.result_snapshots (org_id, payload_ref) where payload_ref is not null;
create unique index result_partials_key on duly.result_partials (org_id, job_id, result_seq);
select duly.isolate('duly.result_snapshots');
-- The two branches are partitions themselves.
select duly.lock_partition('result_partials');
select duly.lock_partition('result_finals');
grant select on duly.result_snapshots to duly_tenant, duly_operator;
grant select, insert on duly.result_snapshots to duly_engine;

-- Results can be erased early, together with the subject of their jobs. Otherwise they are never deleted: the engine
-- writes them once, and retention drops their partitions.
create function duly.erase_snapshots(p_org uuid, p_jobs uuid[]) returns table (payload_ref text)
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_partition regclass;
begin
    -- The owner sees no row of the table itself: row level security is forced there.
    for v_partition in select t.relid from pg_partition_tree('duly.result_snapshots') t where t.isleaf loop
        return query execute format(
            'delete from %s x where x.org_id = $1 and x.job_id = any($2) returning x.payload_ref', v_partition)
            using p_org, p_jobs;
    end loop;
end $$;
grant execute on function duly.erase_snapshots(uuid, uuid[]) to duly_engine;

create table duly.artifacts (
    org_id uuid not null,
    artifact_id uuid not null,
    job_id uuid not null,
    name text not null,
    content_type text not null,
    blob_ref text not null,
    sha256 text not null,
    size bigint not null check (size >= 0),
    created_at timestamptz not null default duly.now(),
    expires_at timestamptz,
    primary key (org_id, artifact_id),
    unique (org_id, job_id, name)
);
create index artifacts_by_blob on duly.artifacts (org_id, blob_ref);
create index artifacts_expiry on duly.artifacts (expires_at);
select duly.isolate('duly.artifacts');
grant select on duly.artifacts to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.artifacts to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 9  Views
--
-- One view per entity, with every field under its name, whatever the physical layout.
-- They run with the rights of the caller, so that row level security applies to the tables behind them.
----------------------------------------------------------------------------------------------------------------------

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
     where f.org_id = r.org_id and f.job_id = r.job_id and f.result_kind = 'final') as result,
    coalesce(s.context -> 'reconciliations', '[]') as reconciliations
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

-- An attempt lasts from its start to the next event that takes the job from the worker.
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

----------------------------------------------------------------------------------------------------------------------
-- 10  Workers
----------------------------------------------------------------------------------------------------------------------

create table duly.workers (
    worker_id uuid primary key,
    name text not null,
    host text not null,
    pid integer not null,
    version text not null,
    queues text[] not null,
    slots integer not null check (slots > 0),
    lease interval not null check (lease > interval '0'),
    started_at timestamptz not null default duly.now(),
    heartbeat_at timestamptz not null default duly.now(),
    draining_at timestamptz,
    stopped_at timestamptz,
    -- A worker that was silent for too long is declared lost; if it wakes up, it finds that here.
    lost_at timestamptz,
    -- The offset of the worker's clock at its last heartbeat. It is only used for a warning.
    clock_offset interval,
    -- A connection of the worker holds an advisory lock as long as its process lives, however busy it is. This is how
    -- long the worker may be silent once that connection is gone; null if it has no such connection.
    silence interval check (silence > interval '0'),
    -- When the connection was found gone, of a worker that was declared lost for that.
    absent_since timestamptz,
    drain_requested_at timestamptz,
    drain_requested_by text,
    drain_reason text,
    check ((drain_requested_at is null) = (drain_requested_by is null))
) with (fillfactor = 50);
create index workers_beating on duly.workers (heartbeat_at) where stopped_at is null and lost_at is null;
-- Stopped workers are retained for a week.
create index workers_lost on duly.workers (lost_at desc) where stopped_at is null and lost_at is not null;
grant select on duly.workers to duly_operator;
grant select, insert, update, delete on duly.workers to duly_engine;

-- One row per claimed batch: the jobs of a lost worker are found without an index on their states.
create table duly.claims (
    claim_id uuid primary key,
    worker_id uuid not null,
    claimed_at timestamptz not null,
    org_ids uuid[] not null,
    job_ids uuid[] not null,
    check (cardinality(org_ids) = cardinality(job_ids))
);
create index claims_by_worker on duly.claims (worker_id);
-- Job ids are mostly random: compressing them would cost time and save nothing.
alter table duly.claims alter column org_ids set storage external, alter column job_ids set storage external;
grant select on duly.claims to duly_operator;
grant select, insert, update, delete on duly.claims to duly_engine;

-- The maintenance loop vacuums busy tables. Before PostgreSQL 17 only the owner can; then autovacuum does it.
do $$
begin
    if current_setting('server_version_num')::integer >= 170000 then
        grant maintain on duly.ready, duly.scheduled, duly.claims, duly.active_runs to duly_engine;
    end if;
end $$;

----------------------------------------------------------------------------------------------------------------------
-- 11  Enqueueing
--
-- One call writes the record, ledger row, event and queue row of many jobs, all or nothing. The Python client,
-- connections of the caller and plain SQL use the same function.
----------------------------------------------------------------------------------------------------------------------

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

-- The client resolves the policy; the database accepts it within limits.
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

-- The fields of a policy that enqueueing needs.
create type duly.policy_read as (
    policy jsonb, policy_hash uuid, queue text, priority smallint, category text, max_attempts smallint, ledger_ttl interval
);

-- With a cryptographic hash, so that no org can make a collision: policies of several orgs are in one claim.
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

-- A job of a batch with all derived fields; its policy by its position in the batch.
create type duly.job_read as (
    ord bigint, job_id uuid, result_id uuid, job_type text, project_id uuid, subject_id text,
    actor_type text, actor_id text, request_id text, correlation_id text, traceparent text,
    idempotency_key text, run_identity_hash text, payload jsonb, payload_ref text, payload_hash text,
    policy integer, metadata jsonb, scheduled_for timestamptz, replay_of uuid, parent_id uuid
);

-- In PL/pgSQL, because that caches plans: most batches have one job.
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

-- Reserve one active run per identity, and return the run that now holds each identity. Only the first job of a key is
-- written, so only that one reserves. The upsert locks the row of another run, so that it cannot end before the commit.
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

-- The result for one job of a batch.
create type duly.job_written as (ord bigint, job_id uuid, created boolean);

-- Two concurrent enqueues of one key met between reservation and ledger: release the unused reservations, and let the
-- caller try again if the result would name a job of this batch that was not written.
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
-- `p_runs` has the run that holds each identity; a job whose identity another run holds is not written.
create function duly.write_jobs(
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

-- The number of queued jobs of an org, counted up to a limit.
create function duly.count_waiting(p_org uuid, p_enough bigint) returns bigint
    language sql stable
begin atomic
    with recursive lanes as (
        (select r.queue from duly.ready r order by r.queue limit 1)
        union all
        select (select r.queue from duly.ready r where r.queue > l.queue order by r.queue limit 1)
        from lanes l where l.queue is not null
    ), waiting as (
        select from lanes l cross join lateral (
            select from duly.ready r where r.queue = l.queue and r.org_id = p_org limit p_enough) w
        where l.queue is not null
        limit p_enough
    )
    select count(*) from waiting;
end;
grant execute on function duly.count_waiting to duly_engine;

-- Check the limit of queued jobs after writing them, so that duplicates do not count. Without a lock, because an open
-- transaction of one caller would block all others of the org: concurrent enqueues may exceed the limit.
create function duly.check_waiting(p_org uuid, p_written duly.job_written[]) returns void
    language plpgsql stable
as $$
declare
    v_max integer := (select g.max_waiting from duly.gates g where g.org_id = p_org and g.job_type = '');
begin
    if v_max is not null and exists (select from unnest(p_written) w where w.created)
        and duly.count_waiting(p_org, v_max + 1) > v_max then
        perform duly.refuse('DU429', 'org_id', format('no more than %s jobs of this org may wait', v_max),
            'try again when some have started, or raise the limit');
    end if;
end $$;
grant execute on function duly.check_waiting to duly_engine;

-- Enqueue many jobs of one org; every enqueue calls this function. A duplicate returns the first job of its key.
-- The work memory keeps the sorts of a batch of thousands in memory.
create function duly.enqueue_jobs(p_org uuid, p_policies jsonb, p_jobs json, p_wake boolean default true)
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
grant execute on function duly.enqueue_jobs to duly_engine, duly_tenant;

-- A short form of the check in the Python client: names of fields that hold secrets, and well-known patterns.
create function duly.has_secret(p_payload jsonb) returns boolean
    language sql immutable parallel safe
    return p_payload::text ~* '["_.a-z0-9-](password|passwd|passphrase|secret|private[_-]?key|api[_-]?key|access[_-]?key|token|credentials?|authorization)": "[^"]'
        or p_payload::text ~ '-----BEGIN [A-Z ]*PRIVATE KEY-----|\m(AKIA|ASIA)[0-9A-Z]{16}\M|\mgh[pousr]_[A-Za-z0-9]{36}|\meyJ[A-Za-z0-9_-]{8,}[.]eyJ|\m[sr]k_live_|://[^/ :@]{1,200}:[^/ @]{1,200}@';

-- For plain SQL and other languages: one job, with each field checked.
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
grant execute on function duly.enqueue to duly_engine, duly_tenant;

grant execute on function
    duly.canonical, duly.stable_hash, duly.check_policies, duly.has_secret, duly.read_policies, duly.read_jobs,
    duly.reserve_runs, duly.settle_runs, duly.write_jobs to duly_engine;
-- These functions write for callers without the right to: they run as the engine. The grants come before the change of
-- owner, which ends the right to grant.
alter function duly.enqueue_jobs owner to duly_engine;
alter function duly.enqueue owner to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 12  Canceling
--
-- A queued job is canceled at once, a running one by a request to its worker.
----------------------------------------------------------------------------------------------------------------------

-- Remove a queued job from its queue or lane; returns nothing if a worker has claimed it. Locks: the queue row.
create function duly.take_out(p_org uuid, p_job uuid)
returns table (org_id uuid, job_id uuid, job_type text, run_identity_hash text, due_at timestamptz)
    language sql
begin atomic
    with job as (
        -- Every column but the hash of the policy, which is younger than this function: so 0.9.0 has it.
        select r.org_id, r.job_id, r.result_id, r.job_type, r.category, r.queue, r.priority, r.max_attempts,
               r.project_id, r.subject_id, r.actor_type, r.actor_id, r.request_id, r.correlation_id, r.traceparent,
               r.idempotency_key, r.run_identity_hash, r.payload, r.payload_ref, r.payload_hash, r.policy,
               r.metadata, r.scheduled_for, r.run_at, r.replay_of, r.parent_id, r.created_at,
               coalesce(s.run_at, r.run_at) as due_at
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

-- queued -> canceled. Writes nothing if the job is not queued.
create function duly.cancel_waiting(
    p_org uuid, p_job uuid, p_by text, p_reason text, p_actor_type text, p_actor_id text
) returns boolean
    language sql
begin atomic
    with job as materialized (
        select * from duly.take_out(p_org, p_job)
    ), ended as (
        insert into duly.job_states as s (
            org_id, job_id, status, outcome, event_seq, run_at, updated_at, finished_at, cancel_requested_at,
            canceled_by, cancel_reason)
        select j.org_id, j.job_id, 'canceled', 'canceled', 2, j.due_at, duly.now(), duly.now(), duly.now(), p_by, p_reason
        from job j
        on conflict (org_id, job_id) do update set
            status = 'canceled', outcome = 'canceled', event_seq = s.event_seq + 1, updated_at = duly.now(),
            finished_at = duly.now(), cancel_requested_at = duly.now(), canceled_by = p_by, cancel_reason = p_reason
        where s.status = 'queued'
        returning s.org_id, s.job_id, s.event_seq, s.attempt
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
        select e.org_id, e.job_id, e.event_seq, 'job.canceled', 'canceled', e.attempt, duly.now(),
               p_actor_type, p_actor_id, jsonb_build_object('canceled_by', p_by, 'cancel_reason', p_reason)
        from ended e
    ), run as (
        delete from duly.active_runs a using job j join ended e using (org_id, job_id)
        where a.org_id = j.org_id and a.job_type = j.job_type and a.run_identity_hash = j.run_identity_hash
          and a.job_id = j.job_id
    )
    select exists (select from ended);
end;

-- running, partial: store the request for the next heartbeat of the worker, and notify the workers, so that they check
-- at once.
create function duly.request_cancel(
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

-- Returns canceled, requested or finished, or null for an unknown job. Idempotent.
-- Each step is a statement of its own, so that it sees what a claim committed while the previous one waited.
-- If the job moved between the steps (a retry, a promotion), the round is rolled back and repeated: an update that
-- found nothing keeps its row lock, and the next round could deadlock with a claim.
create function duly.cancel(
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

grant execute on function duly.take_out, duly.cancel_waiting, duly.request_cancel to duly_engine;
grant execute on function duly.cancel to duly_engine, duly_tenant;
alter function duly.cancel owner to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 13  Dead letters and replays
--
-- Terminal rows never change: a replay is always a new job.
----------------------------------------------------------------------------------------------------------------------

create table duly.dead_letters (
    org_id uuid not null,
    job_id uuid not null,
    job_type text not null,
    queue text not null,
    attempts integer not null,
    fingerprint text not null,
    error_code text not null,
    error_class text not null,
    error_message text not null,
    error_context jsonb not null default '{}',
    dead_at timestamptz not null,
    resolution text check (resolution in ('replayed', 'discarded', 'fixed')),
    resolved_at timestamptz,
    resolved_by text,
    resolve_reason text,
    successor_job_id uuid,
    alerted_at timestamptz,
    primary key (org_id, job_id),
    check ((resolution is null) = (resolved_at is null)),
    check (resolution is null or (resolved_by is not null and resolve_reason is not null)),
    check ((successor_job_id is not null) = (resolution is not null and resolution <> 'discarded'))
);
-- Every dead letter costs an entry in all these indexes, but dead letters are few. The open ones of an org, by kind of
-- failure.
create index dead_letters_open on duly.dead_letters (org_id, fingerprint, dead_at desc) where resolution is null;
-- All of an org, by time.
create index dead_letters_by_time on duly.dead_letters (org_id, dead_at desc, job_id desc);
-- Those that the alerter has not processed yet.
create index dead_letters_to_alert on duly.dead_letters (dead_at) where alerted_at is null;
-- The open ones of all orgs, by kind.
create index dead_letters_by_kind on duly.dead_letters (fingerprint, dead_at desc) where resolution is null;
-- Jobs by the kind of failure they died of, resolved or not: of an org, and of all of them.
create index dead_letters_of_kind on duly.dead_letters (org_id, fingerprint, dead_at desc, job_id desc);
create index dead_letters_everywhere on duly.dead_letters (fingerprint, dead_at desc, job_id desc);
select duly.isolate('duly.dead_letters');
grant select on duly.dead_letters to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.dead_letters to duly_engine;

-- The key of the next replay of a job, or its replay that is still active: there is one at a time.
create function duly.next_replay(p_org uuid, p_job uuid, out idempotency_key text, out active_job_id uuid)
    language plpgsql stable
as $$
begin
    for n in 1..2147483647 loop
        idempotency_key := format('replay:%s:%s', p_job, n);
        select case when r.replay_of = p_job and s.finished_at is null then r.job_id end into active_job_id
        from duly.ledger l
        left join duly.job_records r on r.org_id = l.org_id and r.job_id = l.job_id
        left join duly.job_states s on s.org_id = l.org_id and s.job_id = l.job_id
        where l.org_id = p_org and l.idempotency_key = next_replay.idempotency_key and l.expires_at > duly.now();
        exit when not found or active_job_id is not null;
    end loop;
end $$;

-- The plan of one requested replay: `created` if it is to be written, `found` if `job_id` is an active replay already,
-- `held` if another run holds its identity: `job_id`, or a replay of the same batch.
create type duly.replay_plan as (
    ord bigint, replay_of uuid, disposition text, job_id uuid, idempotency_key text, delay double precision,
    payload jsonb, payload_ref text, payload_hash text
);

-- Jobs that are unknown, active or no longer retained have no plan.
create function duly.plan_replays(p_org uuid, p_jobs json) returns setof duly.replay_plan
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
        join duly.job_states s on s.org_id = p_org and s.job_id = j.job_id and s.finished_at is not null
    ) a
    cross join lateral duly.next_replay(p_org, a.job_id) k
    left join duly.active_runs h
        on h.org_id = p_org and h.job_type = a.job_type and h.run_identity_hash = a.run_identity_hash
    order by a.ord;
end;

-- Replay ended jobs as new jobs, each linked to the old one by `replay_of`, with the same org, project, subject,
-- correlation, policy and payload (or a new payload), and the actor of the replay. A batch has each job once, with the
-- seconds after which it may run. Their first events are job.queued and job.replayed.
-- Locks: those of enqueueing.
create function duly.replay(
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
        select r.*, dense_rank() over (order by r.policy) - 1 as policy_number, p.ord, p.idempotency_key as new_key,
               v_now + make_interval(secs => p.delay) as due_at, p.payload is not null as edited,
               p.payload as new_payload, p.payload_ref as new_ref, p.payload_hash as new_hash
        from unnest(v_new) p join duly.job_records r on r.org_id = p_org and r.job_id = p.replay_of
    )
    select
        (select jsonb_agg(d.policy order by d.policy) from (select distinct s.policy from source s) d),
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

grant execute on function duly.next_replay, duly.plan_replays, duly.replay to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 14  Stale jobs
--
-- Rules for jobs that make no progress, and the records of their reconciliation.
----------------------------------------------------------------------------------------------------------------------

-- The time after which a job of this policy is stale; policies of other versions may lack it, or be invalid.
create function duly.stale_after(p_policy jsonb, p_name text, p_usual double precision) returns interval
    language sql immutable parallel safe
    return make_interval(secs => case jsonb_typeof(p_policy -> 'lifecycle' -> p_name)
        when 'number' then least(greatest((p_policy -> 'lifecycle' ->> p_name)::double precision, 0), 1e9)
        else p_usual end);

-- Whether the reconciler covers jobs of this policy.
create function duly.is_judged(p_policy jsonb) returns boolean
    language sql immutable parallel safe
    return not (p_policy -> 'lifecycle' @> '{"covered": false}' or p_policy -> 'lifecycle' @> '{"supports_reconciliation": false}')
        is true;

-- Whether a pause keeps such jobs from being claimed.
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

-- One row per reconciled job.
create view duly.job_reconciliations with (security_invoker = true) as
select
    s.org_id, s.job_id, r.n as reconciliation_seq, (r.record ->> 'at')::timestamptz as reconciled_at,
    r.record ->> 'kind' as reconciliation_kind, r.record ->> 'reason_code' as reason_code,
    r.record ->> 'message' as reason_message, r.record -> 'evidence' as evidence, r.record ->> 'source' as source,
    r.record ->> 'status' as status
from duly.job_states s
cross join lateral jsonb_array_elements(s.context -> 'reconciliations') with ordinality as r(record, n);
grant select on duly.job_reconciliations to duly_tenant, duly_engine, duly_operator;

----------------------------------------------------------------------------------------------------------------------
-- 15  Failure callbacks
----------------------------------------------------------------------------------------------------------------------

-- The callbacks that failed jobs of some types still need. A row is inserted with the failure, and deleted in the
-- transaction of the callback: whichever process ends the job, the callback takes effect at most once.
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

----------------------------------------------------------------------------------------------------------------------
-- 16  Schedules
----------------------------------------------------------------------------------------------------------------------

create table duly.schedules (
    org_id uuid not null references duly.organizations,
    schedule_id uuid not null default duly.uuid7(),
    name text not null,
    cron text not null,
    timezone text not null default 'UTC',
    job_type text not null,
    payload jsonb not null default '{}',
    missed_policy text not null default 'once' check (missed_policy in ('skip', 'once', 'all')),
    -- A row that was inserted by hand is due at once: the scheduler then computes its first tick.
    next_tick_at timestamptz default duly.now(),
    last_tick_at timestamptz,
    paused_at timestamptz,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    updated_at timestamptz not null default duly.now(),
    project_id uuid,
    -- Every tick up to here is recorded, and none after it.
    counted_until timestamptz not null default duly.now(),
    paused_by text,
    pause_reason text,
    -- A schedule that failed is skipped until then; others are not affected.
    retry_at timestamptz,
    last_error text,
    -- A deleted schedule stays, because its ticks do.
    deleted_at timestamptz,
    primary key (org_id, schedule_id),
    foreign key (org_id, project_id) references duly.projects,
    check (jsonb_typeof(payload) = 'object'),
    check ((paused_at is null) = (paused_by is null))
);
-- A name is free again when its schedule was deleted.
create unique index schedules_by_name on duly.schedules (org_id, name) where deleted_at is null;
-- Includes paused schedules: their ticks are recorded as missed.
create index schedules_due on duly.schedules (next_tick_at) where deleted_at is null;
select duly.isolate('duly.schedules');
grant select on duly.schedules to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.schedules to duly_engine;

create table duly.schedule_ticks (
    org_id uuid not null,
    schedule_id uuid not null,
    tick_at timestamptz not null,
    disposition text not null check (disposition in ('enqueued', 'missed')),
    job_id uuid,
    recorded_at timestamptz not null default duly.now(),
    primary key (org_id, schedule_id, tick_at),
    foreign key (org_id, schedule_id) references duly.schedules,
    check ((disposition = 'enqueued') = (job_id is not null))
) partition by range (tick_at);
select duly.isolate('duly.schedule_ticks');
grant select on duly.schedule_ticks to duly_tenant, duly_operator;
grant select, insert on duly.schedule_ticks to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 17  Audit trail
--
-- Entries, and a hash chain of seals over them. Entries are sealed in the order of their transactions, as feeds read
-- events: an entry that commits late is never skipped.
----------------------------------------------------------------------------------------------------------------------

create table duly.audit_entries (
    org_id uuid not null,
    entry_id uuid not null,
    occurred_at timestamptz not null,
    actor_type text not null,
    actor_id text not null,
    action text not null,
    target_type text not null,
    target_id text not null,
    reason text,
    request_id text,
    correlation_id text,
    detail jsonb not null default '{}',
    -- 0 in the entries of releases before 0.3, which come first in the chain.
    commit_xid xid8 not null default pg_current_xact_id(),
    primary key (org_id, occurred_at, entry_id)
) partition by range (occurred_at);
-- The entries to seal next, of all orgs; and the chain of one org.
create index audit_entries_by_commit on duly.audit_entries (commit_xid, occurred_at, entry_id);
create index audit_entries_in_chain on duly.audit_entries (org_id, commit_xid, occurred_at, entry_id);
select duly.isolate('duly.audit_entries');
grant select on duly.audit_entries to duly_tenant, duly_operator;
grant select, insert on duly.audit_entries to duly_engine;
grant select, insert on duly.audit_entries to duly_auditor;
create policy auditor_appends on duly.audit_entries to duly_auditor
    using (org_id = (select duly.current_org())) with check (org_id = (select duly.current_org()));

create table duly.audit_seals (
    org_id uuid not null,
    seal_seq bigint not null,
    last_occurred_at timestamptz not null,
    last_entry_id uuid not null,
    entry_count bigint not null,
    previous_hash bytea not null,
    hash bytea not null,
    sealed_at timestamptz not null,
    version smallint not null,
    last_commit_xid xid8 not null,
    entry_ids uuid[] not null,
    digests bytea[] not null,
    primary key (org_id, seal_seq),
    check (entry_count = cardinality(entry_ids) and entry_count = cardinality(digests))
);
select duly.isolate('duly.audit_seals');
grant select on duly.audit_seals to duly_tenant, duly_operator;
grant select, insert on duly.audit_seals to duly_engine;

-- The position of the sealer: every entry up to here is sealed. The sealer locks the row.
create table duly.audit_mark (
    one boolean primary key default true check (one),
    commit_xid xid8 not null,
    occurred_at timestamptz not null,
    entry_id uuid not null
);
insert into duly.audit_mark (commit_xid, occurred_at, entry_id)
values ('0', '1970-01-01T00:00:00Z', '00000000-0000-0000-0000-000000000000');
grant select, update on duly.audit_mark to duly_engine;
grant select on duly.audit_mark to duly_operator;

----------------------------------------------------------------------------------------------------------------------
-- 18  Webhooks
----------------------------------------------------------------------------------------------------------------------

-- The webhook endpoints of an org. Null or empty filters mean all.
create table duly.webhook_endpoints (
    org_id uuid not null references duly.organizations,
    endpoint_id uuid not null,
    url text not null,
    description text not null default '',
    event_types text[] not null,
    job_types text[],
    -- The oldest transaction that was open when the endpoint was created: later commits are not older.
    since_xid xid8 not null default pg_snapshot_xmin(pg_current_snapshot()),
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    updated_at timestamptz not null default duly.now(),
    disabled_at timestamptz,
    disabled_by text,
    disable_reason text,
    -- The circuit breaker: consecutive failures, their start, and the time until which nothing is sent.
    failures integer not null default 0,
    failing_since timestamptz,
    shut_until timestamptz,
    primary key (org_id, endpoint_id)
);
select duly.isolate('duly.webhook_endpoints');
grant select on duly.webhook_endpoints to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.webhook_endpoints to duly_engine;

-- Deliveries are signed with every secret that has not expired, so that secrets can be rotated. Read by the engine only.
create table duly.webhook_secrets (
    org_id uuid not null,
    endpoint_id uuid not null,
    secret_id uuid not null,
    secret text not null,
    created_at timestamptz not null default duly.now(),
    expires_at timestamptz,
    primary key (org_id, endpoint_id, secret_id),
    foreign key (org_id, endpoint_id) references duly.webhook_endpoints on delete cascade
);
select duly.isolate('duly.webhook_secrets');
grant select (org_id, endpoint_id, secret_id, created_at, expires_at) on duly.webhook_secrets to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.webhook_secrets to duly_engine;

-- The deliveries to endpoints, with their attempts. A delivery of a job event has the id and sequence of that event;
-- any other has an id of its own, and sequence 1.
create table duly.webhook_deliveries (
    org_id uuid not null,
    endpoint_id uuid not null,
    job_id uuid not null,
    event_seq integer not null check (event_seq > 0),
    event_type text not null,
    -- Null for job events: their body is read from the event when it is sent.
    data jsonb,
    notification_id uuid,
    status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
    tries integer not null default 0,
    -- The last attempts, each with its time, response and error.
    try_log jsonb not null default '[]',
    due_at timestamptz not null,
    -- Whether it waits for the previous delivery of the same job; the end of that one releases it.
    follows boolean not null default false,
    -- The process that sends it now, and the end of its lease; until then it is not due.
    held_by uuid,
    held_until timestamptz,
    created_at timestamptz not null default duly.now(),
    ended_at timestamptz,
    primary key (org_id, endpoint_id, job_id, event_seq),
    check ((status = 'pending') = (ended_at is null))
) partition by range (job_id);
-- The next deliveries of each endpoint: at most one per job, however many wait behind it.
create index webhook_deliveries_due on duly.webhook_deliveries (org_id, endpoint_id, due_at) where status = 'pending' and not follows;
create index webhook_deliveries_by_time on duly.webhook_deliveries (org_id, endpoint_id, created_at desc, job_id desc, event_seq desc);
select duly.isolate('duly.webhook_deliveries');
grant select on duly.webhook_deliveries to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.webhook_deliveries to duly_engine;

-- The position of the event relay: every event up to here has its deliveries. The relay locks the row.
create table duly.relay_mark (
    one boolean primary key default true check (one),
    commit_xid xid8 not null,
    job_id uuid not null,
    event_seq integer not null,
    moved_at timestamptz not null default duly.now()
);
insert into duly.relay_mark (commit_xid, job_id, event_seq) values ('0', '00000000-0000-0000-0000-000000000000', 0);
grant select, update on duly.relay_mark to duly_engine;
grant select on duly.relay_mark to duly_operator;

----------------------------------------------------------------------------------------------------------------------
-- 19  Notifications
----------------------------------------------------------------------------------------------------------------------

-- Subscriptions to the end of one job, of a job type, or of all jobs.
create table duly.subscriptions (
    org_id uuid not null references duly.organizations,
    subscription_id uuid not null,
    job_id uuid,
    job_type text,
    outcomes text[] not null check (outcomes <@ array['completed', 'failed', 'dead', 'canceled'] and cardinality(outcomes) > 0),
    channel text not null,
    recipient text not null,
    locale text not null,
    since_xid xid8 not null default pg_snapshot_xmin(pg_current_snapshot()),
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    told_at timestamptz,
    primary key (org_id, subscription_id),
    check (job_id is null or job_type is null)
);
create index subscriptions_of_job on duly.subscriptions (org_id, job_id) where job_id is not null;
create index subscriptions_wide on duly.subscriptions (org_id, subscription_id) where job_id is null;
select duly.isolate('duly.subscriptions');
grant select on duly.subscriptions to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.subscriptions to duly_engine;

-- The message templates of orgs; without one, the built-in template is used.
create table duly.notification_templates (
    org_id uuid not null references duly.organizations,
    template_key text not null,
    locale text not null,
    subject text not null,
    body text not null,
    updated_by text not null,
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, template_key, locale)
);
select duly.isolate('duly.notification_templates');
grant select on duly.notification_templates to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.notification_templates to duly_engine;

create table duly.notifications (
    org_id uuid not null references duly.organizations,
    notification_id uuid not null,
    -- The subject of the notification, if it is a job.
    job_id uuid,
    channel text not null,
    recipient text not null,
    template_key text not null,
    locale text not null,
    payload jsonb not null,
    payload_hash text not null,
    schedule_bucket text not null,
    -- The rendered message; null before it is sent.
    subject text,
    body text,
    delivery_status text not null default 'pending' check (delivery_status in ('pending', 'sent', 'failed', 'suppressed')),
    attempt_count integer not null default 0,
    last_error text,
    -- The job that delivers it.
    delivery_job_id uuid,
    scheduled_at timestamptz not null,
    sent_at timestamptz,
    read_at timestamptz,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, notification_id)
);
create unique index notifications_once on duly.notifications (org_id, channel, recipient, template_key, payload_hash, schedule_bucket);
create index notifications_by_job on duly.notifications (org_id, job_id, channel) where job_id is not null;
create index notifications_by_status on duly.notifications (delivery_status, scheduled_at);
create index notifications_to_hand_over on duly.notifications (scheduled_at) where delivery_status = 'pending' and delivery_job_id is null;
create index notifications_pending on duly.notifications (org_id) where delivery_status = 'pending';
create index notifications_of_recipient on duly.notifications (org_id, channel, recipient, notification_id desc);
select duly.isolate('duly.notifications');
grant select on duly.notifications to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.notifications to duly_engine;

-- The preferences of recipients by template; the empty template stands for all others.
create table duly.notification_preferences (
    org_id uuid not null references duly.organizations,
    channel text not null,
    recipient text not null,
    template_key text not null default '',
    wanted boolean not null,
    updated_by text not null,
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, channel, recipient, template_key)
);
select duly.isolate('duly.notification_preferences');
grant select on duly.notification_preferences to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.notification_preferences to duly_engine;

-- Suppressed recipients, to whom nothing is sent: addresses that bounce, people who have left.
create table duly.notification_suppressions (
    org_id uuid not null references duly.organizations,
    channel text not null,
    recipient text not null,
    reason text not null,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, channel, recipient)
);
select duly.isolate('duly.notification_suppressions');
grant select on duly.notification_suppressions to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.notification_suppressions to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 20  Alerts and statistics
----------------------------------------------------------------------------------------------------------------------

-- Alerts, open until their cause ends. Those of the installation belong to the system org.
create table duly.alerts (
    org_id uuid not null references duly.organizations,
    alert_id uuid not null,
    kind text not null,
    -- One open alert per kind and target.
    target text not null,
    severity text not null check (severity in ('warning', 'critical')),
    summary text not null,
    detail jsonb not null default '{}',
    measured double precision,
    threshold double precision,
    fired_at timestamptz not null default duly.now(),
    seen_at timestamptz not null default duly.now(),
    resolved_at timestamptz,
    -- Whether the recipients were notified that it fired, and that it was resolved.
    told_at timestamptz,
    told_end_at timestamptz,
    primary key (org_id, alert_id)
);
create unique index alerts_open on duly.alerts (org_id, kind, target) where resolved_at is null;
-- Without alerts of dead letters: those are notified by subscriptions.
create index alerts_to_tell on duly.alerts (org_id, fired_at)
    where kind <> 'dead_letter' and (told_at is null or (resolved_at is not null and told_end_at is null));
-- Alerts that are resolved when they were not refreshed for a while; that of a dead letter ends with the letter.
create index alerts_to_watch on duly.alerts (seen_at) where kind <> 'dead_letter' and resolved_at is null;
create index alerts_over on duly.alerts (resolved_at) where kind <> 'dead_letter';
create index alerts_by_time on duly.alerts (org_id, fired_at desc, alert_id desc);
-- A job dies once, so it has at most one alert.
create unique index alerts_of_dead_letters on duly.alerts (org_id, target) where kind = 'dead_letter';
select duly.isolate('duly.alerts');
grant select on duly.alerts to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.alerts to duly_engine;

-- Queue statistics by the minute: one row per queue, minute and worker process, with absolute numbers that the process
-- overwrites as they grow.
create table duly.queue_minutes (
    minute timestamptz not null,
    queue text not null,
    -- Not the worker: a worker that was declared lost continues under another id, and keeps counting.
    recorder_id uuid not null,
    started integer not null,
    completed integer not null,
    failed integer not null,
    retried integer not null,
    canceled integer not null,
    run_seconds double precision not null,
    -- Histograms: the indexes of the non-empty buckets, and their counts.
    wait_buckets smallint[] not null,
    wait_counts integer[] not null,
    run_buckets smallint[] not null,
    run_counts integer[] not null,
    primary key (minute, queue, recorder_id),
    check (cardinality(wait_buckets) = cardinality(wait_counts) and cardinality(run_buckets) = cardinality(run_counts))
) with (fillfactor = 50);
grant select, insert, update, delete on duly.queue_minutes to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 21  Blobs and retention
--
-- A partition is dropped when all its rows are old and none is needed; rows of other tables are deleted in small
-- batches by the maintenance jobs.
----------------------------------------------------------------------------------------------------------------------

-- Blobs that dropped rows referred to; their org is part of the name. Equal content is one blob per org: it is deleted
-- when no row refers to it any more.
create table duly.released_blobs (
    blob_ref text primary key,
    released_at timestamptz not null default duly.now()
);
create index released_blobs_oldest on duly.released_blobs (released_at);
grant select, insert, update, delete on duly.released_blobs to duly_engine;

-- Every row that refers to a blob. A new table with references must be added here, or its blobs are deleted.
create view duly.named_blobs with (security_invoker = true) as
select org_id, payload_ref as blob_ref from duly.job_records where payload_ref is not null
union all
select org_id, payload_ref from duly.result_snapshots where payload_ref is not null
union all
select org_id, blob_ref from duly.artifacts;
grant select on duly.named_blobs to duly_engine;

set local role duly_engine;

-- The jobs whose rows must stay: all rows of an active job (one snapshot over all tables where it can be), and the
-- record while an idempotency key still reads its status. Owned by the engine, which sees all orgs. Lanes are rows of
-- `ready`, and a claimed job always has a state.
create view duly.kept_back as
select org_id, job_id, true as whole, 'is ready' as why from duly.ready
union all
select org_id, job_id, true, 'waits for its time' from duly.scheduled
union all
select org_id, job_id, true, 'is ' || status from duly.job_states where finished_at is null
union all
select org_id, job_id, false, 'answers a live idempotency key' from duly.ledger
where final_status is null and expires_at > duly.now();
grant select on duly.kept_back to duly_owner, duly_operator;

set local role duly_owner;

-- The following functions are for the owner only, except the last one, which the engine may call.

-- The reason why a partition may not be dropped; null if it may. No new job gets such an old id, and an ended job never
-- changes: a partition that can be dropped stays so, and the check needs no lock.
create function duly.why_kept(
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
    if t.parent = 'job_states' and exists (
        select from duly.partitions p where p.parent = 'job_records' and p.starts_at < p_to and p.ends_at > p_from
    ) then
        v_why := coalesce(v_why, 'its job_records are still there');
    end if;
    if v_why is null then
        execute format('select exists (select from duly.%I where %I >= $1)',
            replace(p_partition, t.parent, t.dated_in), t.dated_by)
        into v_young using p_cutoff;
        v_why := case when v_young then format('has rows with %s after %s', t.dated_by, p_cutoff) end;
    end if;
    return v_why;
end $$;

-- All access goes through the parent, and the drop locks the parent first. Only that lock can take time, and nothing
-- else is held meanwhile: a deadlock is impossible.
create function duly.drop_partition(t duly.partitioned_tables, p_partition text) returns void
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
    if t.parent = 'event_log' then
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

-- The default partition is never dropped: its old rows are deleted, a few hundred at a time.
create function duly.delete_strays(
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
    if t.parent = 'job_states' then
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
            case when t.parent = 'event_log' then 'd.commit_xid' else 'null::xid8' end)
    into v_deleted using p_cutoff;
    return v_deleted;
end $$;

-- Drop at most one partition of a table: the oldest whose whole range is older than `p_keep` and whose rows are not
-- needed; and delete some old rows of the default partition. Returns what was dropped, and what was retained and why.
-- One process at a time, with a lock timeout of two seconds.
create function duly.drop_expired_partitions(p_parent text, p_keep interval)
returns table (partition text, outcome text, why text, row_count integer)
    language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s'
    -- It reads whole partitions, unlike any other statement of the engine.
    set enable_seqscan = on set enable_hashjoin = on
as $$
declare
    t duly.partitioned_tables := (select p from duly.partitioned_tables p where p.parent = p_parent);
    v_step interval := ('1 ' || t.step)::interval;
    v_cutoff timestamptz := duly.now() - p_keep;
    v_before timestamptz;
    c duly.partitions;
begin
    if t.parent is null then
        perform duly.refuse('DU404', 'parent', format('%L has no partitions', p_parent),
            'name a table of duly.partitioned_tables');
    end if;
    if p_keep is null or p_keep <= interval '0' or p_keep > interval '50 years' then
        perform duly.refuse('DU422', 'keep', 'not a time to keep rows for', 'give up to 50 years');
    end if;
    if not pg_try_advisory_xact_lock(4846231971) then
        return query values (p_parent, 'busy', 'another process changes the partitions', null::integer);
        return;
    end if;
    -- The last step is made again by `ensure_partitions`, and new jobs may have ids of yesterday.
    v_before := least(v_cutoff, (date_trunc(t.step, duly.now() at time zone 'UTC') - v_step) at time zone 'UTC');
    for c in select * from duly.partitions p where p.parent = p_parent and p.ends_at <= v_before order by p.ends_at loop
        partition := c.partition;
        why := duly.why_kept(t, c.partition, c.starts_at, c.ends_at, v_cutoff);
        outcome := 'kept';
        if why is null then
            begin
                perform duly.drop_partition(t, c.partition);
                outcome := 'dropped';
            exception
                when lock_not_available then
                    outcome := 'busy';
                    why := sqlerrm;
                when dependent_objects_still_exist then
                    why := sqlerrm;
            end;
        end if;
        return next;
        if outcome = 'dropped' then
            return; -- and commit soon: the lock is held until then
        end if;
        exit when outcome = 'busy';
    end loop;
    partition := t.parent || '_default';
    outcome := 'deleted';
    why := null;
    row_count := duly.delete_strays(t, v_before, v_cutoff);
    if row_count > 0 then
        return next;
    end if;
end $$;
grant execute on function duly.drop_expired_partitions to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 22  Of earlier releases
--
-- What enqueueing used before 0.4. Nothing calls it any more; a later migration drops it.
----------------------------------------------------------------------------------------------------------------------

create type duly.job_input as (
    ord bigint, job_id uuid, result_id uuid, job_type text, project_id uuid, subject_id text,
    actor_type text, actor_id text, request_id text, correlation_id text, traceparent text,
    idempotency_key text, run_identity_hash text, payload jsonb, payload_ref text, payload_hash text,
    policy jsonb, metadata jsonb, scheduled_for timestamptz, replay_of uuid, parent_id uuid
);

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

create function duly.write_jobs(p_org uuid, p_jobs duly.job_input[], p_runs duly.active_runs[], p_now timestamptz)
returns setof duly.job_written
    -- It joins the batch with itself: thousands of rows, whatever size a cached plan was made for.
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

grant execute on function
    duly.parse_jobs, duly.reserve_runs(uuid, duly.job_input[], timestamptz),
    duly.settle_runs(uuid, duly.job_input[], duly.job_written[]),
    duly.write_jobs(uuid, duly.job_input[], duly.active_runs[], timestamptz) to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- All partitioned tables exist: create their partitions.
----------------------------------------------------------------------------------------------------------------------

do $$
declare
    t duly.partitioned_tables;
begin
    for t in select * from duly.partitioned_tables loop
        execute format('create table duly.%I partition of duly.%I default %s', t.parent || '_default', t.parent, t.storage);
        perform duly.lock_partition(t.parent || '_default');
    end loop;
end $$;

select duly.ensure_partitions();

revoke create on schema duly from duly_engine;
