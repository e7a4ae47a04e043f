-- Purpose: the notifications of an org between two places, the newest first; other filters that are null say nothing.
-- Index: the primary key backwards, or notifications_of_recipient, or notifications_by_job.
select * from duly.notifications n
where n.org_id = %(org_id)s
  and n.notification_id < %(before)s and n.notification_id >= %(floor)s
  and (%(status)s::text is null or n.delivery_status = %(status)s)
  and (%(channel)s::text is null or n.channel = %(channel)s)
  and (%(recipient)s::text is null or n.recipient = %(recipient)s)
  and (%(job_id)s::uuid is null or n.job_id = %(job_id)s)
order by n.notification_id desc
limit %(limit)s
