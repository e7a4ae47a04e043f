-- Purpose: what became of the last ticks of some schedules before a moment, so many of each, the newest first, with how
-- their jobs are; of one that is no longer kept, nothing. Index: the primary keys of ticks, records and states.
-- Lateral, with a limit: each is looked up by its key, whatever the planner thinks of the tables.
select t.*, j.*
from unnest(%(schedule_ids)s::uuid[]) k(schedule_id)
cross join lateral (
    select schedule_id, tick_at, disposition, job_id, recorded_at from duly.schedule_ticks
    where org_id = %(org_id)s and schedule_id = k.schedule_id and tick_at < %(before)s
    order by tick_at desc
    limit %(limit)s
) t
left join lateral (
    select status, outcome, started_at, finished_at from duly.jobs where org_id = %(org_id)s and job_id = t.job_id limit 1
) j on true
