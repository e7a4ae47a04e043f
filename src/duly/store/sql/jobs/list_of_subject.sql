-- Purpose: the next jobs of a subject, the newest first, and which of them are of a job type and a status.
-- Index: job_records_by_subject, then the primary key of the states. Reads `look` records at most.
select r.job_id, null::timestamptz as at,
       (%(job_type)s::text is null or r.job_type = %(job_type)s)
       and (%(status)s::text is null or coalesce(s.status, 'queued') = %(status)s) as fits
from duly.job_records r
left join duly.job_states s on s.org_id = r.org_id and s.job_id = r.job_id
where r.org_id = %(org_id)s and r.subject_id = %(subject_id)s and r.job_id < %(before_job)s
order by r.job_id desc
limit %(look)s
