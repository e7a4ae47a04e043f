-- Purpose: read the backlogs of these orgs: queued jobs, counted up to `max_count`; when the oldest of the next ones
-- became runnable; and the limits of the org as a whole.
-- Index: primary keys; loose scans over ready's primary key, one step for each lane, org and priority.
-- Lateral, with a limit: each row is read by its key, whatever the planner's estimate of the tables.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
)
select o.org_id, o.name, o.status, duly.count_waiting(o.org_id, %(max_count)s) as waiting, w.oldest_waiting_at,
       g.max_running, g.starts_per_second, g.max_waiting, g.paused_at, g.pause_reason, duly.now() as read_at
from unnest(%(org_ids)s::uuid[]) k(org_id)
cross join lateral (select o.* from duly.organizations o where o.org_id = k.org_id limit 1) o
left join duly.gates g on g.org_id = o.org_id and g.job_type = ''
cross join lateral (
    with recursive heads as (
        select l.lane, h.rank, h.job_id
        from lanes l
        cross join lateral (
            select r.rank, r.job_id from duly.ready r
            where r.queue = l.lane and r.org_id = o.org_id order by r.rank, r.job_id limit 1) h
        where l.lane is not null
        union all
        select h.lane, next.rank, next.job_id
        from heads h
        cross join lateral (
            select r.rank, r.job_id from duly.ready r
            where r.queue = h.lane and r.org_id = o.org_id and r.rank > h.rank
            order by r.rank, r.job_id limit 1) next
    )
    select min(coalesce(s.run_at, r.run_at)) as oldest_waiting_at
    from heads h
    cross join lateral (
        select r.run_at from duly.job_records r where r.org_id = o.org_id and r.job_id = h.job_id limit 1) r
    left join lateral (
        select s.run_at from duly.job_states s where s.org_id = o.org_id and s.job_id = h.job_id limit 1) s on true
) w
order by o.org_id
