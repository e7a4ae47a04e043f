-- Purpose: what became of the last ticks of a schedule, the newest first. Index: the primary key.
select tick_at, disposition, job_id, recorded_at from duly.schedule_ticks
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
order by tick_at desc
limit %(limit)s
