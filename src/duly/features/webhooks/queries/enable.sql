-- Purpose: send to an endpoint again; its failures are forgotten. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    disabled_at = null, disabled_by = null, disable_reason = null, failures = 0, failing_since = null, shut_until = null,
    updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
