-- Purpose: list the lanes of an org with jobs that could start now: their number up to `limit` + 1, since when the oldest
-- is queued, and the first `heads` of each priority.
-- Index: loose scans over ready's primary key, one step per lane and one per priority of the org; then primary keys.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
), ranks as (
    select l.lane, first.rank
    from lanes l
    cross join lateral (
        select r.rank from duly.ready r
        where r.queue = l.lane and r.org_id = %(org_id)s order by r.rank limit 1) first
    union all
    select k.lane, next.rank
    from ranks k
    cross join lateral (
        select r.rank from duly.ready r
        where r.queue = k.lane and r.org_id = %(org_id)s and r.rank > k.rank order by r.rank limit 1) next
), heads as (
    select k.lane, h.job_id, coalesce(s.run_at, r.run_at) as run_at
    from ranks k
    cross join lateral (
        select q.org_id, q.job_id from duly.ready q
        where q.queue = k.lane and q.org_id = %(org_id)s and q.rank = k.rank order by q.job_id limit %(heads)s) h
    join duly.job_records r on r.org_id = h.org_id and r.job_id = h.job_id
    left join duly.job_states s on s.org_id = h.org_id and s.job_id = h.job_id
)
select h.lane, min(h.run_at) as oldest_waiting_at, array_agg(h.job_id) as heads,
       (select count(*) from (
            select from duly.ready r where r.queue = h.lane and r.org_id = %(org_id)s limit %(limit)s + 1) c) as waiting
from heads h
group by h.lane
order by h.lane
