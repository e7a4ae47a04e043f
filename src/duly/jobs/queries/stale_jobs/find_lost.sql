-- Purpose: jobs that are held by workers that are lost, stopped, or silent for longer than their lease. Claims are few.
-- Lateral, with a limit: each job is looked up by its key, whatever the planner estimates.
with gone as materialized (
    select c.worker_id, c.org_ids, c.job_ids
    from duly.claims c
    left join duly.workers w using (worker_id)
    where w.worker_id is null or coalesce(w.lost_at, w.stopped_at) is not null or w.heartbeat_at + w.lease < duly.now()
)
select s.org_id, s.job_id
from gone g
cross join lateral unnest(g.org_ids, g.job_ids) j(org_id, job_id)
cross join lateral (
    select s.* from duly.job_states s
    where s.org_id = j.org_id and s.job_id = j.job_id and s.worker_id = g.worker_id and s.status in ('running', 'partial')
    limit 1
) s
limit %(limit)s
