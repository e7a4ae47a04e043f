-- Purpose: the lanes of these queues that have runnable jobs and an open gate, and the time to the next due job.
-- Index: a loose scan over ready's primary key, one step per lane; the first row of scheduled.
-- One row at least, without a lane, so that the time is always told.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
), open as (
    select l.lane, q.queue, q.weight, split_part(l.lane, '#', 2) as job_type
    from lanes l
    join duly.queues q on q.queue = split_part(l.lane, '#', 1)
    left join duly.gates g
        on g.org_id = '00000000-0000-0000-0000-000000000000' and g.job_type = split_part(l.lane, '#', 2)
    where q.paused_at is null and q.queue = any (%(queues)s) and coalesce(duly.gate_room(g), 1) > 0
)
select o.lane, o.queue, o.weight, o.job_type, duly.now() as now, due.run_at as due_at
from (select 1) always
left join open o on true
left join lateral (select s.run_at from duly.scheduled s order by s.run_at limit 1) due on true
