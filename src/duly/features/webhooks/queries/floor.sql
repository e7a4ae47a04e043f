-- Purpose: where a look at so many messages to an endpoint before a place ends; nothing if there are fewer.
-- Index: webhook_deliveries_by_time.
select created_at, job_id, event_seq
from duly.webhook_deliveries
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
  and (created_at, job_id, event_seq) < (%(before_at)s, %(before_job)s, %(before_seq)s)
order by created_at desc, job_id desc, event_seq desc
offset %(look)s - 1 limit 1
