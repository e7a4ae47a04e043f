-- name: count_overdue_callbacks
-- Purpose: count the failure callbacks that are overdue, by job type: `overdue` are those that no process calls.
-- Index: owed callbacks are few.
select d.job_type, count(*) as callbacks,
       count(*) filter (where d.due_at < duly.now() - %(max_overdue)s::interval) as overdue,
       duly.now() - min(d.owed_at) as age, max(d.last_error) as last_error
from duly.bridge_debts d
where d.due_at < duly.now() - %(max_overdue)s::interval or d.owed_at < duly.now() - %(max_age)s::interval
group by d.job_type order by 4 desc, 1 limit 20

-- name: count_overdue_jobs
-- Purpose: count the due jobs that no worker has promoted, by queue, among the oldest thousand.
-- Index: the head of scheduled.
select o.queue, count(*) as jobs, duly.now() - min(o.run_at) as late
from (select s.queue, s.run_at from duly.scheduled s
      where s.run_at < duly.now() - %(grace)s::interval order by s.run_at limit 1000) o
group by o.queue order by 1

-- name: list_alerts
-- Purpose: list the open alerts of the installation, and the silence of the last worker if none is alive.
-- Index: alerts_open; workers are few.
select a.severity, a.summary, a.fired_at from duly.alerts a
where a.org_id = %(system_org)s and a.kind not in ('dead_letter', 'no_worker') and a.resolved_at is null
union all
select 'critical', 'no worker has sent a heartbeat for ' || date_trunc('second', duly.now() - w.heard_at), w.heard_at
from (
    select max(greatest(w.heartbeat_at, w.stopped_at)) as heard_at,
           bool_or(w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()) as alive
    from duly.workers w) w
where not w.alive and w.heard_at < duly.now() - %(max_silence)s::interval
order by 3

-- name: list_dead_rows
-- Purpose: list the tables with many more dead rows than live ones.
select s.relname::text as table_name, s.n_dead_tup as dead, s.n_live_tup as live
from pg_catalog.pg_stat_user_tables s
where s.schemaname = 'duly' and s.n_dead_tup > %(max_dead)s and s.n_dead_tup > s.n_live_tup
order by 2 desc, 1 limit 5

-- name: list_durability_settings
-- Purpose: list the settings by which a commit may be lost.
select name, setting from pg_catalog.pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') order by name

-- name: list_foreign_owners
-- Purpose: list the tables and views of the schema that do not belong to its roles.
select c.relname::text as relation, c.relowner::regrole::text as owner,
       case when c.relkind = 'v' then 'view' else 'table' end as kind
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
join pg_catalog.pg_roles r on r.oid = c.relowner
where c.relkind in ('r', 'p', 'v') and r.rolname not in ('duly_owner', 'duly_engine')
order by 1

-- name: list_functions
-- Purpose: list the security definer functions with their owner and the expected one.
-- A function that tenants may call runs as the engine, which policies bind; the others as the owner of the schema.
select format('duly.%%I(%%s)', p.proname, pg_get_function_identity_arguments(p.oid)) as function_name,
       p.proowner::regrole::text as owner,
       case when has_function_privilege('duly_tenant', p.oid, 'execute') then 'duly_engine' else 'duly_owner' end as expected,
       exists (select from unnest(p.proconfig) s where s = 'search_path=pg_catalog, pg_temp') as pinned
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname = 'duly'
where p.prosecdef
order by 1

-- name: list_job_types
-- Purpose: list the published job types with their policies.
select t.job_type, t.policy::text as policy from duly.job_types t order by 1

-- name: list_broken_rows
-- Purpose: list jobs whose rows break the rules that statements keep: the newest jobs of up to a hundred orgs.
-- As constraints they would be compiled for every statement. Index: the primary keys of orgs, records, states and events.
with org as (
    (select o.org_id from duly.organizations o order by o.org_id limit 50)
    union
    (select o.org_id from duly.organizations o order by o.org_id desc limit 50)
), job as materialized (
    select r.* from org o cross join lateral (
        select * from duly.job_records r where r.org_id = o.org_id order by r.job_id desc limit %(limit)s) r
)
select j.org_id, j.job_id, b.rule
from job j
left join lateral (
    select * from duly.job_states s where s.org_id = j.org_id and s.job_id = j.job_id limit 1) s on true
cross join lateral (values
    ('its record has no job type', j.job_type = ''),
    ('its record allows no attempt', j.max_attempts <= 0),
    ('its record has no actor, request or correlation', '' in (j.actor_id, j.request_id, j.correlation_id)),
    ('its record has an unknown type of actor',
     j.actor_type not in ('user', 'api_key', 'system', 'worker', 'operator')),
    ('its record has an empty idempotency key', j.idempotency_key = ''),
    ('its payload is not an object', jsonb_typeof(j.payload) <> 'object'),
    ('its policy is not stored', duly.policy_of(j.policy, j.policy_hash) is null),
    ('its project does not exist', j.project_id is not null and not exists (
        select from duly.projects p where p.org_id = j.org_id and p.project_id = j.project_id)),
    ('its idempotency key has an unknown final status', exists (
        select from duly.key_ledger l
        where l.org_id = j.org_id and l.final_status not in ('succeeded', 'failed', 'dead')
          and l.key_hash = duly.key_hash(coalesce(j.idempotency_key, duly.generated_key(
              duly.key_prefix(j.org_id, j.job_type, j.project_id), j.subject_id,
              coalesce(j.payload_hash, duly.payload_hash(j.payload))))))),
    ('its progress is not between 0 and 100', s.progress_percent not between 0 and 100),
    ('its state contradicts itself', not (
        (s.status in ('queued', 'running', 'partial') and s.outcome = 'pending' and s.finished_at is null)
        or (s.status = 'completed' and s.outcome in ('succeeded', 'partially_succeeded') and s.finished_at is not null
            and s.progress_percent = 100)
        or (s.status = 'failed' and s.outcome in ('failed', 'blocked', 'dead') and s.finished_at is not null
            and s.error_code is not null and s.error_message is not null and s.retryable is not null)
        or (s.status = 'canceled' and s.outcome = 'canceled' and s.finished_at is not null
            and s.canceled_by in ('user', 'system', 'worker') and s.cancel_reason is not null))),
    ('an event of it has no number', exists (
        select from duly.event_log e where e.org_id = j.org_id and e.job_id = j.job_id and e.event_seq < 1))
) b(rule, broken)
where b.broken
order by j.job_id, b.rule
limit %(limit)s

-- name: list_memberships
-- Purpose: list every role that the named ones may become, directly or through others.
with recursive held as (
    select m.member, m.roleid from pg_catalog.pg_auth_members m
    join pg_catalog.pg_roles r on r.oid = m.member where r.rolname = any (%(roles)s)
    union
    select h.member, m.roleid from held h join pg_catalog.pg_auth_members m on m.member = h.roleid
)
select o.rolname::text as role, r.rolname::text as member_of, r.rolsuper or r.rolbypassrls as unbound
from held h
join pg_catalog.pg_roles o on o.oid = h.member
join pg_catalog.pg_roles r on r.oid = h.roleid
order by 1, 2

-- name: list_old_transactions
-- Purpose: list the transactions that have been open for long, also prepared ones: vacuum cannot remove newer dead rows.
-- The times are of the server's own clock.
select a.pid::text as name, coalesce(a.usename, '') || ' ' || coalesce(a.application_name, '') as client,
       false as prepared, now() - a.xact_start as age
from pg_catalog.pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
  and a.xact_start < now() - %(older_than)s::interval
union all
select p.gid, p.owner || ' prepared', true, now() - p.prepared
from pg_catalog.pg_prepared_xacts p
where p.database = current_database() and p.prepared < now() - %(older_than)s::interval
order by 4 desc limit 5

-- name: list_partitions
-- Purpose: list the partitions that should exist now, as `duly.ensure_partitions` creates them, and whether they do.
-- The last one of each table is not urgent: it is created in the hour after its predecessor began. A migration created
-- the default ones, which take the rows of no other partition.
select t.parent, f.at at time zone 'UTC' as starts_at, n.n < t.ahead as urgent, false as is_default,
       format('%%s_%%s', t.parent, to_char(f.at, 'YYYYMMDD')) as partition,
       exists (
           select from duly.partitions p
           where p.parent = t.parent and f.at at time zone 'UTC' >= p.starts_at and f.at at time zone 'UTC' < p.ends_at
       ) as present
from duly.partitioned_tables t
cross join generate_series(-1, t.ahead) n
cross join lateral (
    select date_trunc(t.step, duly.now() at time zone 'UTC') + ('1 ' || t.step)::interval * n.n as at) f
union all
select t.parent, null, true, true, format('%%s_default', t.parent),
       exists (select from duly.partitions p where p.parent = t.parent and p.partition = format('%%s_default', t.parent))
from duly.partitioned_tables t
order by 2 nulls last, 1

-- name: list_replication_slots
-- Purpose: list the replication slots, and how much WAL the server retains for each.
select s.slot_name::text as slot, s.active, s.wal_status,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint as bytes
from pg_catalog.pg_replication_slots s order by 4 desc, 1

-- name: list_roles
-- Purpose: list those of the named roles that exist, and whether row level security binds them.
select r.rolname::text as role, r.rolsuper as superuser, r.rolbypassrls as bypassrls
from pg_catalog.pg_roles r where r.rolname = any (%(roles)s)

-- name: list_table_sizes
-- Purpose: list the tables of the schema and their partitions with their sizes and estimated rows: reads no row of them.
-- The statistics of inserts are more recent than those of vacuum, but lost when the server crashes.
select coalesce(p.parent, c.relname)::text as table_name, p.starts_at, p.ends_at,
       greatest(c.reltuples, pg_stat_get_live_tuples(c.oid), 0)::double precision as row_count,
       pg_total_relation_size(c.oid) as bytes, pg_indexes_size(c.oid) as index_bytes
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
left join duly.partitions p on p.partition = c.relname
where c.relkind = 'r'

-- name: list_tenant_tables
-- Purpose: list every table with rows of orgs, its row level security and its policies.
select c.relname::text as table_name, c.relispartition as is_partition, c.relrowsecurity as enabled,
       c.relforcerowsecurity as forced,
       coalesce((
           select json_object_agg(p.polname, json_build_array(
               p.polcmd, p.polpermissive, (select string_agg(coalesce(r.rolname, 'public'), ' ' order by r.rolname)
                          from unnest(p.polroles) o left join pg_catalog.pg_roles r on r.oid = o),
               pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)))
           from pg_catalog.pg_policy p where p.polrelid = c.oid), '{}') as policies
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
where c.relkind in ('r', 'p') and exists (
    select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped)
order by c.relispartition, c.relname

-- name: list_views
-- Purpose: list the views that tenants may read, and whether they run with the rights of the reader.
select c.relname::text as view_name, coalesce((
    select o.option_value::boolean from pg_options_to_table(c.reloptions) o where o.option_name = 'security_invoker'),
    false) as invoker
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
where c.relkind = 'v' and has_any_column_privilege('duly_tenant', c.oid, 'select')
order by 1

-- name: list_worker_clocks
-- Purpose: list the clock offsets of the live workers, as of their last heartbeat.
select w.name, w.host, w.clock_offset
from duly.workers w
where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()
order by w.name, w.worker_id

-- name: read_activity
-- Purpose: read the ended jobs and run times of the last day, and its busiest hour and minute.
-- Index: the primary key of queue_minutes, from its end; no more than max_rows rows.
with recent as materialized (
    select m.minute, m.completed + m.failed + m.canceled as ended, m.run_seconds,
           m.completed + m.failed + m.canceled + m.retried as runs
    from duly.queue_minutes m where m.minute > duly.now() - interval '1 day' order by m.minute desc limit %(max_rows)s
), minutes as (
    select r.minute, sum(r.ended) as ended from recent r group by 1
)
select coalesce(sum(r.ended), 0)::bigint as ended, coalesce(sum(r.runs), 0)::bigint as runs,
       coalesce(sum(r.run_seconds), 0) as run_seconds,
       case when count(*) = %(max_rows)s then min(r.minute) else duly.now() - interval '1 day' end as since,
       coalesce((select max(m.ended) from minutes m), 0)::bigint as busiest_minute,
       coalesce((select max(h.ended) from (select sum(m.ended) as ended from minutes m group by date_trunc('hour', m.minute)) h),
           0)::bigint as busiest_hour
from recent r

-- name: read_archiver
-- Purpose: read whether archiving fails, if it is on. The times are of the server's own clock.
select coalesce(a.last_failed_time > coalesce(a.last_archived_time, '-infinity'), false) as failing,
       a.last_failed_wal as segment, now() - a.last_archived_time as since
from pg_catalog.pg_stat_archiver a
where current_setting('archive_mode') <> 'off'

-- name: read_autovacuum
-- Purpose: read whether autovacuum is on, and the tables on which it is disabled.
select current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean as enabled,
       array(
           select c.relname::text
           from pg_catalog.pg_class c
           join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
           cross join lateral pg_options_to_table(c.reloptions) o
           where o.option_name = 'autovacuum_enabled' and not o.option_value::boolean order by 1) as disabled_tables

-- name: read_clock
-- Purpose: read the database's time.
select duly.now()

-- name: read_disk
-- Purpose: read the size of the database and its directory; only privileged logins see the latter.
select pg_database_size(current_database()) as bytes, inet_server_addr() is null as same_machine,
       (select s.setting from pg_catalog.pg_settings s where s.name = 'data_directory') as directory

-- name: read_oldest_unfrozen
-- Purpose: read the table with the oldest unfrozen transaction, and the age at which it should be frozen.
select c.oid::regclass::text as relation, age(c.relfrozenxid) as age,
       current_setting('autovacuum_freeze_max_age')::integer as max_age
from pg_catalog.pg_class c where c.relkind in ('r', 'm', 't') and c.relfrozenxid <> '0'
order by 2 desc, 1 limit 1

-- name: read_load
-- Purpose: read since when the server counts its WAL, and what the live workers have.
-- The times of the server are of its own clock. Index: workers are few.
select duly.now() as now, (select min(v.applied_at) from duly.schema_versions v) as installed_at,
       pg_postmaster_start_time() as started_at, pg_backend_pid() as pid, w.wal_bytes::bigint as wal_bytes,
       w.stats_reset as wal_since, pg_size_bytes(current_setting('max_wal_size')) as max_wal_bytes, l.slots, l.hosts
from pg_catalog.pg_stat_wal w
cross join (
    select coalesce(sum(x.slots), 0)::integer as slots, coalesce(array_agg(distinct x.host), '{}') as hosts
    from duly.workers x
    where x.stopped_at is null and x.lost_at is null and x.heartbeat_at + x.lease >= duly.now()) l

-- name: read_server
-- Purpose: read the server and the process that answers: behind a pooler, another one each time.
-- One statement, so that it needs no transaction, which a pooler may refuse.
select current_setting('server_version_num')::integer as version,
       split_part(current_setting('server_version'), ' ', 1) as version_name,
       current_database()::text as database, session_user::text as login, pg_is_in_recovery() as standby,
       pg_postmaster_start_time() as started_at, pg_backend_pid() as pid
