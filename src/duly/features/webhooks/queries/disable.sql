-- Purpose: send nothing to an endpoint any more. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    disabled_at = duly.now(), disabled_by = %(by)s, disable_reason = %(reason)s, updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
