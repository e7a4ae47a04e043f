-- Purpose: one message to an endpoint. Index: the primary key.
select org_id, endpoint_id, job_id, event_seq, event_type, data is null as about_a_job, notification_id, status, tries, try_log,
       due_at, created_at, ended_at
from duly.webhook_deliveries
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and job_id = %(job_id)s and event_seq = %(event_seq)s
