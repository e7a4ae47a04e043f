-- Purpose: one heartbeat for all jobs of a worker, and whether it is asked to drain. No row: the worker was declared
-- lost, and holds nothing any more.
-- Index: the primary key; one heap-only update.
update duly.workers set heartbeat_at = duly.now(), clock_offset = %(clock)s::timestamptz - duly.now(),
    silence = %(silence)s,
    draining_at = coalesce(draining_at, case when %(draining)s then duly.now() end)
where worker_id = %(worker_id)s and stopped_at is null and lost_at is null
returning heartbeat_at, drain_requested_at is not null
