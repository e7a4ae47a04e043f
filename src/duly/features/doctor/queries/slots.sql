-- Purpose: replication slots, and how much of the log the server keeps for each.
select s.slot_name::text as slot, s.active, s.wal_status,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint as bytes
from pg_catalog.pg_replication_slots s order by 4 desc, 1
