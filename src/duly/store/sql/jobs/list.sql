-- Purpose: the next jobs of the session's org, the newest first, and which of them are of a job type.
-- Index: the primary key of the records, backwards. Reads `look` rows at most, whether they fit or not.
select r.job_id, null::timestamptz as at, %(job_type)s::text is null or r.job_type = %(job_type)s as fits
from duly.job_records r
where r.org_id = %(org_id)s and r.job_id < %(before_job)s
order by r.job_id desc
limit %(look)s
