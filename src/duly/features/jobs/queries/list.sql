-- Purpose: the next jobs of the session's org, the newest first.
-- Index: the primary key of the records, backwards. Reads `look` rows at most.
select r.job_id, null::timestamptz as at
from duly.job_records r
where r.org_id = %(org_id)s and r.job_id >= %(first_job)s and r.job_id < %(before_job)s
order by r.job_id desc
limit %(look)s
