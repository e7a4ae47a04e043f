-- Purpose: keep a new endpoint. Under the lock of the org, so that its endpoints can be counted before.
insert into duly.webhook_endpoints (org_id, endpoint_id, url, description, event_types, job_types, created_by)
values (%(org_id)s, duly.uuid7(), %(url)s, %(description)s, %(event_types)s, %(job_types)s, %(created_by)s)
returning endpoint_id
