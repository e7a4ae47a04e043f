-- Purpose: the next jobs of all orgs that were canceled, the last to end first. Index: event_log_rare, which has the event
-- that ended each. Reads `look` events at most, and those of the same moment.
select e.org_id, e.job_id, e.occurred_at
from duly.event_log e
where e.event_type = 'job.canceled'
  and e.occurred_at <= %(before_at)s and (e.occurred_at, e.job_id) < (%(before_at)s, %(before_job)s)
order by e.occurred_at desc, e.job_id desc
limit %(look)s
