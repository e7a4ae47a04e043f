-- Purpose: jobs that are held by workers that are lost, stopped, or silent for longer than their lease. Claims are few.
with gone as materialized (
    select c.worker_id, c.org_ids, c.job_ids
    from duly.claims c
    left join duly.workers w using (worker_id)
    where w.worker_id is null or coalesce(w.lost_at, w.stopped_at) is not null or w.heartbeat_at + w.lease < duly.now()
)
select j.org_id, j.job_id
from gone g
cross join lateral unnest(g.org_ids, g.job_ids) j(org_id, job_id)
cross join lateral (
    select from duly.state_of(j.org_id, j.job_id) s
    where s.worker_id = g.worker_id and s.status in ('running', 'partial') limit 1
) s
limit %(limit)s
