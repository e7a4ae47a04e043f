-- Purpose: one queue, held for a change. Index: the primary key. Locks: the queue's row; claims only read it.
select queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait from duly.queues where queue = %(queue)s for update
