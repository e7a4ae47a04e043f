-- Purpose: let the secrets of an endpoint sign no longer than the overlap. Under the endpoint's lock.
-- Index: the primary key.
update duly.webhook_secrets set expires_at = least(expires_at, duly.now() + %(overlap)s::interval)
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
