-- Purpose: the next jobs of a subject, the newest first. Index: job_records_by_subject. Reads `look` rows at most.
select r.job_id, null::timestamptz as at
from duly.job_records r
where r.org_id = %(org_id)s and r.subject_id = %(subject_id)s
  and r.job_id >= %(first_job)s and r.job_id < %(before_job)s
order by r.job_id desc
limit %(look)s
