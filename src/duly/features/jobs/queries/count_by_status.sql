-- Purpose: count the jobs of an org in each status, each up to `limit` + 1.
-- Index: job_states_ended; loose scans over ready's primary key, one step per lane and one per priority of the org;
-- scheduled_by_org. Claims are few, one per running batch; then the primary key of the states.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
), waiting as (
    select from lanes l
    cross join lateral (
        select from duly.ready r where r.queue = l.lane and r.org_id = %(org_id)s limit %(limit)s + 1) w
    union all
    (select from duly.scheduled s where s.org_id = %(org_id)s limit %(limit)s + 1)
), held as materialized (
    select distinct h.job_id, h.status
    from (select h.job_id, h.status from duly.held_jobs h where h.org_id = %(org_id)s limit %(limit)s + 1) h
)
select 'queued' as status, (select count(*) from (select from waiting limit %(limit)s + 1) w) as n
union all
select h.status, count(*) from held h group by h.status
union all
select e.status, least(%(limit)s + 1, (select count(*) from (
    select from duly.job_states s
    where s.org_id = %(org_id)s and s.status = e.status and s.finished_at is not null limit %(limit)s + 1) c)
    + (select coalesce(sum(b.job_count), 0) from (
        select b.job_count from duly.event_batches b
        where e.status = 'completed' and b.org_id = %(org_id)s and b.event_type = 'job.completed' limit %(limit)s + 1) b))
from unnest(array['completed', 'failed', 'canceled']) e(status)
