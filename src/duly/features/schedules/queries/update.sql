-- Purpose: give a schedule another definition; a changed time counts from now on. Index: the primary key.
-- Under the lock of the schedule. It stays paused if it was.
update duly.schedules set
    cron = %(cron)s, timezone = %(timezone)s, job_type = %(job_type)s, payload = %(payload)s,
    missed_policy = %(missed_policy)s, project_id = %(project_id)s, next_tick_at = %(next_tick_at)s,
    counted_until = %(counted_until)s, retry_at = null, last_error = null, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
returning *, duly.now() as read_at
