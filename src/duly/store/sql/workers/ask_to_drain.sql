-- Purpose: ask a living worker to drain: it hears of it with its next heartbeat. The first who asks is kept; whether it
-- is us. No row: there is no such worker, or it has gone. Index: the primary key.
-- Locks: its row, for as long as the audit entry takes to be written; a heartbeat waits for that.
with living as materialized (
    select w.worker_id, w.drain_requested_at is null and w.draining_at is null as is_new
    from duly.workers w
    where w.worker_id = %(worker_id)s and w.stopped_at is null and w.lost_at is null
    for update
), asked as (
    update duly.workers w
    set drain_requested_at = duly.now(), drain_requested_by = %(by)s, drain_reason = %(reason)s
    from living l
    where w.worker_id = l.worker_id and l.is_new
)
select l.is_new from living l
