-- Purpose: jobs of the future whose time came long ago, and which nobody brought to their queue.
-- Index: the primary key, which begins with the time.
select q.org_id, q.job_id
from duly.scheduled q
join duly.job_records r using (org_id, job_id)
where q.run_at < duly.now() - %(at_least)s and q.run_at < duly.now() - make_interval(secs =>
    coalesce((r.policy -> 'lifecycle' ->> 'queued_stale_after')::double precision, %(usual)s))
order by q.run_at limit %(limit)s
