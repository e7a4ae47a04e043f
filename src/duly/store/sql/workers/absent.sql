-- Purpose: workers whose own connection is gone, and who are silent for longer than is allowed then.
-- Who has not been heard of since the server started may be about to come back: there only the lease counts.
-- Index: workers_beating; all locks of the server are looked at, but only if somebody is silent.
select w.worker_id, duly.now()
from duly.workers w
where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.silence < duly.now()
  and w.heartbeat_at > pg_postmaster_start_time()
  and not exists (
      select from pg_locks l
      where l.locktype = 'advisory' and l.granted and l.objsubid = 1
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and (l.classid::bigint << 32 | l.objid::bigint) = uuid_hash_extended(w.worker_id, 0))
