-- Purpose: the next jobs of all orgs that wait, in the order in which the queues have them.
-- Index: a loose scan over ready's primary key, one step per lane; then that key itself. Reads `look` rows of a lane at most.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
)
select w.queue, w.org_id, w.rank, w.job_id
from lanes l
cross join lateral (
    select r.* from duly.ready r
    where r.queue = l.lane
      and (r.org_id, r.rank, r.job_id) > (
          case when l.lane = %(lane)s then %(after_org)s::uuid else '00000000-0000-0000-0000-000000000000' end,
          %(rank)s::smallint, %(after_job)s::uuid)
    order by r.org_id, r.rank, r.job_id
    limit %(look)s
) w
where l.lane >= %(lane)s and (%(queue)s::text is null or split_part(l.lane, '#', 1) = %(queue)s)
order by w.queue, w.org_id, w.rank, w.job_id
limit %(look)s
