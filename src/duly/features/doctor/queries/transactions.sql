-- Purpose: transactions that have been open for long, prepared ones too: nothing newer can be cleaned up.
-- The server's own times: against its own clock.
select a.pid::text as who, coalesce(a.usename, '') || ' ' || coalesce(a.application_name, '') as whose, now() - a.xact_start as age
from pg_catalog.pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
  and a.xact_start < now() - %(older_than)s::interval
union all
select p.gid, p.owner || ' prepared', now() - p.prepared
from pg_catalog.pg_prepared_xacts p
where p.database = current_database() and p.prepared < now() - %(older_than)s::interval
order by 3 desc limit 5
