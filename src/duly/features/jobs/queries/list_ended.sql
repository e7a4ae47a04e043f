-- Purpose: the next jobs of the session's org that ended in this way, the last to end first.
-- Index: job_states_ended. Reads `look` states at most, and those that ended at the same moment.
select s.job_id, s.finished_at as at
from duly.job_states s
where s.org_id = %(org_id)s and s.status = %(status)s and s.finished_at is not null
  and s.finished_at <= %(before_at)s and (s.finished_at, s.job_id) < (%(before_at)s, %(before_job)s)
order by s.finished_at desc, s.job_id desc
limit %(look)s
