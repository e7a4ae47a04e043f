-- Purpose: request that a living worker drains; it learns that with its next heartbeat. The first request stays; returns
-- whether this is the first. No row: there is no such worker, or it has gone. Index: the primary key.
-- Locks: its row, until the audit entry is written; a heartbeat waits for that.
with living as materialized (
    select w.worker_id, w.drain_requested_at is null and w.draining_at is null as is_new
    from duly.workers w
    where w.worker_id = %(worker_id)s and w.stopped_at is null and w.lost_at is null
    for update
), requested as (
    update duly.workers w
    set drain_requested_at = duly.now(), drain_requested_by = %(by)s, drain_reason = %(reason)s
    from living l
    where w.worker_id = l.worker_id and l.is_new
)
select l.is_new from living l
