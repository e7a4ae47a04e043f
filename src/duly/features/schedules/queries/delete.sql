-- Purpose: end a schedule; the row and its ticks stay as history. Index: the primary key.
-- Under the lock of the schedule.
update duly.schedules set deleted_at = duly.now(), next_tick_at = null, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
