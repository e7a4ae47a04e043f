-- Purpose: the next jobs of the session's org that ended in this way, the last to end first, and which of them are of
-- a job type. Index: job_states_ended, then the primary key of the records. Reads `look` states at most, and those
-- that ended at the same moment.
select s.job_id, s.finished_at as at,
       %(job_type)s::text is null or %(job_type)s = (
           select r.job_type from duly.job_records r where r.org_id = s.org_id and r.job_id = s.job_id) as fits
from duly.job_states s
where s.org_id = %(org_id)s and s.status = %(status)s and s.finished_at is not null
  and s.finished_at <= %(before_at)s and (s.finished_at, s.job_id) < (%(before_at)s, %(before_job)s)
order by s.finished_at desc, s.job_id desc
limit %(look)s
