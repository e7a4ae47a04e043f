-- Purpose: jobs whose attempt is older than its horizon, found by the claims of their workers, which are few.
select s.org_id, s.job_id
from duly.claims c
cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
join duly.job_states s on s.org_id = j.org_id and s.job_id = j.job_id and s.status in ('running', 'partial')
join duly.job_records r on r.org_id = s.org_id and r.job_id = s.job_id
where c.claimed_at < duly.now() - %(at_least)s
  and s.attempt_started_at < duly.now() - duly.stale_after(r.policy, 'running_stale_after', %(usual)s)
  and duly.is_judged(r.policy)
limit %(limit)s
