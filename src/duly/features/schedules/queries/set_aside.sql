-- Purpose: leave a schedule alone for a while that could not be served, and say why. Index: the primary key.
-- Its ticks stay due: they are served when the obstacle is gone.
update duly.schedules set retry_at = duly.now() + %(pause)s, last_error = %(error)s
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
