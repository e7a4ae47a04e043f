-- Purpose: jobs of the future whose time came long ago, and which nobody brought to their queue.
-- Index: the primary key, which begins with the time.
select q.org_id, q.job_id
from duly.scheduled q
join duly.job_records r using (org_id, job_id)
where q.run_at < duly.now() - %(at_least)s
  and q.run_at < duly.now() - duly.stale_after(r.policy, 'queued_stale_after', %(usual)s)
  and duly.is_judged(r.policy) and not duly.is_paused(r.org_id, r.queue, r.job_type)
order by q.run_at limit %(limit)s
