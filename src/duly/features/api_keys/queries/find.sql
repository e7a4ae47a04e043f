-- Purpose: the key that a caller names, of whichever active org, with the hash of its secret.
-- Index: api_keys_by_key.
select k.org_id, k.key_id, k.name, k.environment, k.scopes, k.created_by, k.created_at, k.expires_at, k.revoked_at,
       k.last_used_at, k.secret_hash, duly.now() as now
from duly.api_keys k
join duly.organizations o on o.org_id = k.org_id and o.status = 'active'
where k.key_id = %(key_id)s
