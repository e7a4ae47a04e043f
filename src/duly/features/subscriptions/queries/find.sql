-- Purpose: the same subscription, if there is one. Index: subscriptions_of_job, or subscriptions_wide.
select * from duly.subscriptions s
where s.org_id = %(org_id)s and s.job_id is not distinct from %(job_id)s and s.job_type is not distinct from %(job_type)s
  and s.channel = %(channel)s and s.recipient = %(recipient)s and s.outcomes = %(outcomes)s and s.locale = %(locale)s
limit 1
