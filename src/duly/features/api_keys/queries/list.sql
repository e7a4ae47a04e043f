-- Purpose: the keys of an org, in the order of their ids. Index: the primary key.
select org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
       duly.now() as now
from duly.api_keys
where org_id = %(org_id)s and key_id > %(after)s
order by key_id
limit %(limit)s
