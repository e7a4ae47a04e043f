-- Purpose: note how far the ticks are recorded, and when the next one comes. Index: the primary key.
-- Under the lock of the schedule. What stood in its way is forgotten.
update duly.schedules set
    counted_until = %(counted_until)s, next_tick_at = %(next_tick_at)s,
    last_tick_at = coalesce(%(last_tick_at)s, last_tick_at), retry_at = null, last_error = null
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
