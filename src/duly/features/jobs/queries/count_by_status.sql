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
    select distinct s.job_id, s.status
    from duly.claims c
    cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
    join duly.job_states s on s.org_id = j.org_id and s.job_id = j.job_id and s.status in ('running', 'partial')
    where j.org_id = %(org_id)s
    limit %(limit)s + 1
)
select 'queued' as status, (select count(*) from (select from waiting limit %(limit)s + 1) w) as n
union all
select h.status, count(*) from held h group by h.status
union all
select e.status, (select count(*) from (
    select from duly.job_states s
    where s.org_id = %(org_id)s and s.status = e.status and s.finished_at is not null limit %(limit)s + 1) c)
from unnest(array['completed', 'failed', 'canceled']) e(status)
