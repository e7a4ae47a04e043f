-- Purpose: how many keys of an org count, and the database's time. Index: the primary key.
select count(*) as live, duly.now() as now
from duly.api_keys
where org_id = %(org_id)s
  and (expires_at is null or expires_at > duly.now())
  and (revoked_at is null or revoked_at > duly.now())
