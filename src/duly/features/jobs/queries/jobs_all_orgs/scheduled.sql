-- Purpose: the next jobs of all orgs whose time has not come, the first due first. Index: the primary key.
select s.run_at, s.org_id, s.job_id
from duly.scheduled s
where s.run_at >= %(after_at)s and (s.run_at, s.org_id, s.job_id) > (%(after_at)s, %(after_org)s, %(after_job)s)
order by s.run_at, s.org_id, s.job_id
limit %(look)s
