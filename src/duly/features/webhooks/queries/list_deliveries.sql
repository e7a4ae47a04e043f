-- Purpose: a page of the messages to an endpoint between two places, the newest first. Index: webhook_deliveries_by_time.
select org_id, endpoint_id, job_id, event_seq, event_type, data is null as about_a_job, notification_id, status, tries, try_log,
       due_at, created_at, ended_at
from duly.webhook_deliveries
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
  and (created_at, job_id, event_seq) < (%(before_at)s, %(before_job)s, %(before_seq)s)
  and (created_at, job_id, event_seq) >= (%(floor_at)s, %(floor_job)s, %(floor_seq)s)
  and (%(status)s::text is null or status = %(status)s)
  and (%(event_type)s::text is null or event_type = %(event_type)s)
  and (%(job_id)s::uuid is null or job_id = %(job_id)s)
order by created_at desc, job_id desc, event_seq desc
limit %(limit)s
