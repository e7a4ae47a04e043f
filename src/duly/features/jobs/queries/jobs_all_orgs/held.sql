-- Purpose: the next jobs of all orgs that workers hold, the newest first. Claims are few, one per batch at work.
-- Index: the primary key of the states.
select distinct s.org_id, s.job_id
from duly.claims c
cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
join duly.job_states s on s.org_id = j.org_id and s.job_id = j.job_id
where j.job_id < %(before_job)s and s.status in ('running', 'partial') and s.status = any (%(statuses)s)
order by s.job_id desc, s.org_id
limit %(look)s
