-- name: archiver
-- Purpose: whether the log is archived if it should be. The server's own times: against its own clock.
select coalesce(a.last_failed_time > coalesce(a.last_archived_time, '-infinity'), false) as failing,
       a.last_failed_wal as segment, now() - a.last_archived_time as since
from pg_catalog.pg_stat_archiver a
where current_setting('archive_mode') <> 'off'

-- name: clock
-- Purpose: what time it is.
select duly.now()

-- name: dead_rows
-- Purpose: tables with many more dead rows than living ones.
select s.relname::text as table_name, s.n_dead_tup as dead, s.n_live_tup as live
from pg_catalog.pg_stat_user_tables s
where s.schemaname = 'duly' and s.n_dead_tup > %(most)s and s.n_dead_tup > s.n_live_tup
order by 2 desc, 1 limit 5

-- name: debts
-- Purpose: callbacks that are owed and were not made in time, by job type: `unpaid` those that nobody tries.
-- Index: debts are few.
select d.job_type, count(*) as debts, count(*) filter (where d.due_at < duly.now() - %(patience)s::interval) as unpaid,
       duly.now() - min(d.owed_at) as age, max(d.last_error) as last_error
from duly.bridge_debts d
where d.due_at < duly.now() - %(patience)s::interval or d.owed_at < duly.now() - %(endurance)s::interval
group by d.job_type order by 4 desc, 1 limit 20

-- name: disk
-- Purpose: how large the database is, and where it lies; the latter is told to the privileged only.
select pg_database_size(current_database()) as bytes, inet_server_addr() is null as same_machine,
       (select s.setting from pg_catalog.pg_settings s where s.name = 'data_directory') as directory

-- name: durability
-- Purpose: the settings by which a commit may be lost.
select name, setting from pg_catalog.pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') order by name

-- name: frozen
-- Purpose: the table whose oldest transaction is the oldest, and the age at which it should be frozen.
select c.oid::regclass::text as relation, age(c.relfrozenxid) as age,
       current_setting('autovacuum_freeze_max_age')::integer as most
from pg_catalog.pg_class c where c.relkind in ('r', 'm', 't') and c.relfrozenxid <> '0'
order by 2 desc, 1 limit 1

-- name: job_types
-- Purpose: the job types that were published, each with its policy.
select t.job_type, t.policy::text as policy from duly.job_types t order by 1

-- name: overdue
-- Purpose: jobs whose time has come and whom nobody has made ready, by queue; the oldest thousand are looked at.
-- Index: the head of scheduled.
select o.queue, count(*) as jobs, duly.now() - min(o.run_at) as late
from (select s.queue, s.run_at from duly.scheduled s
      where s.run_at < duly.now() - %(patience)s::interval order by s.run_at limit 1000) o
group by o.queue order by 1

-- name: roles
-- Purpose: those of the named roles that there are, and whether row level security holds for them.
select r.rolname::text as role, r.rolsuper as superuser, r.rolbypassrls as bypassrls
from pg_catalog.pg_roles r where r.rolname = any (%(roles)s)

-- name: server
-- Purpose: which server this is, and which of its processes answers: behind a pooler, another one each time.
-- One statement, so that it needs no transaction: poolers may refuse those.
select current_setting('server_version_num')::integer as version,
       split_part(current_setting('server_version'), ' ', 1) as version_name,
       current_database()::text as database, session_user::text as login, pg_is_in_recovery() as standby,
       pg_postmaster_start_time() as started_at, pg_backend_pid() as pid

-- name: slots
-- Purpose: replication slots, and how much of the log the server keeps for each.
select s.slot_name::text as slot, s.active, s.wal_status,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint as bytes
from pg_catalog.pg_replication_slots s order by 4 desc, 1

-- name: worker_clocks
-- Purpose: how far the clocks of the living workers are off, by their last heartbeat.
select w.name, w.host, w.clock_offset
from duly.workers w
where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()
order by w.name, w.worker_id
