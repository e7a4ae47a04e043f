-- Purpose: which of these ticks are recorded already. Index: the primary key.
-- Read under the lock of the schedule, so that nobody records one of them meanwhile.
select t.tick_at from duly.schedule_ticks t
where t.org_id = %(org_id)s and t.schedule_id = %(schedule_id)s and t.tick_at = any (%(ticks)s)
