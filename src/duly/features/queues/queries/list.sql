-- Purpose: every queue, the weightiest first. Index: none; queues are few.
select queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait from duly.queues order by weight desc, queue
