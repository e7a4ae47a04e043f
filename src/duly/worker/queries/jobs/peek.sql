-- Purpose: list the lanes of these queues that have runnable jobs and an open gate, and the time of the next due job.
-- Index: a loose scan over ready's primary key, one step per lane; the first row of scheduled.
-- At least one row, without a lane, so that the time is always returned.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
), gated as (
    select l.lane, q.queue, q.weight, split_part(l.lane, '#', 2) as job_type, g as gate
    from lanes l
    join duly.queues q on q.queue = split_part(l.lane, '#', 1)
    left join duly.gates g
        on g.org_id = '00000000-0000-0000-0000-000000000000' and g.job_type = split_part(l.lane, '#', 2)
    where q.paused_at is null and q.queue = any (%(queues)s)
)
select o.lane, o.queue, o.weight, o.job_type, duly.now() as now, due.run_at as due_at,
       -- A lane whose gate has no token left: when it has one again. Those of orgs are found by polling.
       (select min(duly.now() + make_interval(secs => (1 - duly.gate_tokens(s.gate)) / (s.gate).starts_per_second))
        from gated s where (s.gate).paused_at is null and duly.gate_tokens(s.gate) < 1) as opens_at
from (select 1) always
left join gated o on coalesce(duly.gate_room(o.gate), 1) > 0
left join lateral (select s.run_at from duly.scheduled s order by s.run_at limit 1) due on true
