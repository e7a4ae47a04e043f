-- Purpose: how long until the next tick to come, of job types that this process knows. Index: schedules_due.
select s.next_tick_at - duly.now()
from duly.schedules s
where s.deleted_at is null and s.next_tick_at > duly.now() and s.job_type = any (%(job_types)s)
order by s.next_tick_at
limit 1
