-- Purpose: end a key now or later, never later than it would have ended. Locks: its row. Index: the primary key.
update duly.api_keys set revoked_at = least(revoked_at, duly.now() + %(overlap)s::interval)
where org_id = %(org_id)s and key_id = %(key_id)s
returning org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
          duly.now() as now
