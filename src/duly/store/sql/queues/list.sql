-- Purpose: every queue, the weightiest first. Index: none; queues are few.
select queue, weight, paused_at, paused_by, pause_reason from duly.queues order by weight desc, queue
