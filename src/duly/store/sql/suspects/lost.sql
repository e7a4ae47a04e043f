-- Purpose: jobs that are held by workers who are lost, gone, or silent for longer than their lease. Claims are few.
select s.org_id, s.job_id
from duly.claims c
left join duly.workers w using (worker_id)
cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
join duly.job_states s on s.org_id = j.org_id and s.job_id = j.job_id and s.worker_id = c.worker_id
    and s.status in ('running', 'partial')
where w.worker_id is null or coalesce(w.lost_at, w.stopped_at) is not null or w.heartbeat_at + w.lease < duly.now()
limit %(limit)s
