-- Purpose: the subscriptions of an org, the newest first, or those of one who asks: made by them, or for them.
-- Index: the primary key backwards, or subscriptions_of_job.
select * from duly.subscriptions s
where s.org_id = %(org_id)s
  and (%(before)s::uuid is null or s.subscription_id < %(before)s)
  and (%(job_id)s::uuid is null or s.job_id = %(job_id)s)
  and (%(created_by)s::text is null or s.created_by = %(created_by)s
       or s.channel = 'in_app' and s.recipient = %(user_id)s)
order by s.subscription_id desc
limit %(limit)s
