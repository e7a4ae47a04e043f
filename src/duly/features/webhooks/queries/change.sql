-- Purpose: another definition of an endpoint. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    url = %(url)s, description = %(description)s, event_types = %(event_types)s, job_types = %(job_types)s,
    updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
