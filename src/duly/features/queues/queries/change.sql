-- Purpose: another weight or other alerts for a queue, or a pause (or, without a name of who pauses, its end).
-- Index: the primary key. Locks: the queue's row, which the caller holds.
update duly.queues set
    weight = %(weight)s, alert_depth = %(alert_depth)s, alert_wait = %(alert_wait)s,
    paused_at = case when %(paused_by)s::text is not null then coalesce(paused_at, duly.now()) end,
    resumed_at = case when paused_at is not null and %(paused_by)s::text is null then duly.now() else resumed_at end,
    paused_by = %(paused_by)s, pause_reason = %(pause_reason)s
where queue = %(queue)s
returning queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait
