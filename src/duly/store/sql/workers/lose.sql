-- Purpose: declare workers lost whose last heartbeat is older than their lease; or, of those that were found absent,
-- older than absent ones may be silent.
-- Locks: their rows, skipping a heartbeat that is just being written. Index: workers_beating.
with silent as materialized (
    select w.worker_id, a.since
    from duly.workers w
    left join unnest(%(absent)s::uuid[], %(since)s::timestamptz[]) a(worker_id, since) on a.worker_id = w.worker_id
    where w.stopped_at is null and w.lost_at is null
      and w.heartbeat_at + case when a.since is null then w.lease else least(w.silence, w.lease) end < duly.now()
    order by w.worker_id for update of w skip locked
)
update duly.workers w set lost_at = duly.now(), absent_since = s.since from silent s where w.worker_id = s.worker_id
returning w.worker_id, w.absent_since
