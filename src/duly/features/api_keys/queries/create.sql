-- Purpose: keep a new key; its secret is nowhere. Index: the primary key.
insert into duly.api_keys (org_id, key_id, name, environment, secret_hash, scopes, created_by, expires_at)
values (%(org_id)s, %(key_id)s, %(name)s, %(environment)s, %(secret_hash)s, %(scopes)s, %(created_by)s, %(expires_at)s)
returning org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
          duly.now() as now
