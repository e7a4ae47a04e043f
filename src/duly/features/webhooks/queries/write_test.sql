-- Purpose: a message that is about no job, to be sent at once. Under the lock of the endpoint.
insert into duly.webhook_deliveries (org_id, endpoint_id, job_id, event_seq, event_type, data, due_at)
values (%(org_id)s, %(endpoint_id)s, duly.uuid7(), 1, %(event_type)s, %(data)s, duly.now())
returning org_id, endpoint_id, job_id, event_seq, event_type, data is null as about_a_job, notification_id, status, tries, try_log,
          due_at, created_at, ended_at
