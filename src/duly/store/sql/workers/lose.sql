-- Purpose: declare workers lost whose last heartbeat is older than their lease.
-- Locks: their rows, skipping a heartbeat that is just being written. Index: workers_beating.
with silent as materialized (
    select w.worker_id from duly.workers w
    where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease < duly.now()
    order by w.worker_id for update skip locked
)
update duly.workers w set lost_at = duly.now() from silent s where w.worker_id = s.worker_id
returning w.worker_id
