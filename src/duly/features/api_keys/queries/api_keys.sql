-- name: count_live
-- Purpose: count the keys of an org that are neither expired nor revoked; return the database's time.
-- Index: the primary key.
select count(*) as live, duly.now() as now
from duly.api_keys
where org_id = %(org_id)s
  and (expires_at is null or expires_at > duly.now())
  and (revoked_at is null or revoked_at > duly.now())

-- name: create
-- Purpose: write a new key with the hash of its secret; the secret is stored nowhere. Index: the primary key.
insert into duly.api_keys (org_id, key_id, name, environment, secret_hash, scopes, created_by, expires_at)
values (%(org_id)s, %(key_id)s, %(name)s, %(environment)s, %(secret_hash)s, %(scopes)s, %(created_by)s, %(expires_at)s)
returning org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
          duly.now() as now

-- name: find
-- Purpose: find the key of an id in any active org, with the hash of its secret. Index: api_keys_by_key.
select k.org_id, k.key_id, k.name, k.environment, k.scopes, k.created_by, k.created_at, k.expires_at, k.revoked_at,
       k.last_used_at, k.secret_hash, duly.now() as now
from duly.api_keys k
join duly.organizations o on o.org_id = k.org_id and o.status = 'active'
where k.key_id = %(key_id)s

-- name: list
-- Purpose: list the keys of an org by id. Index: the primary key.
select org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
       duly.now() as now
from duly.api_keys
where org_id = %(org_id)s and key_id > %(after)s
order by key_id
limit %(limit)s

-- name: lock
-- Purpose: lock a key of an org for a change. Locks: its row. Index: the primary key.
select org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
       duly.now() as now
from duly.api_keys
where org_id = %(org_id)s and key_id = %(key_id)s
for update

-- name: lock_table
-- Purpose: make sure that the next statement does not wait. Locks: the table, as every write does, or an error at once.
lock table duly.api_keys in row exclusive mode nowait

-- name: read
-- Purpose: read a key of an org. Index: the primary key.
select org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
       duly.now() as now
from duly.api_keys
where org_id = %(org_id)s and key_id = %(key_id)s

-- name: revoke
-- Purpose: revoke a key now or after an overlap, never later than it would have ended. Locks: its row.
-- Index: the primary key.
update duly.api_keys set revoked_at = least(revoked_at, duly.now() + %(overlap)s::interval)
where org_id = %(org_id)s and key_id = %(key_id)s
returning org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at,
          duly.now() as now

-- name: touch
-- Purpose: record the use of a key, unless another request did, or the key is being changed.
-- Locks: its row, skipped if held. Index: the primary key.
with free as materialized (
    select org_id, key_id from duly.api_keys
    where org_id = %(org_id)s and key_id = %(key_id)s and last_used_at is not distinct from %(last_used_at)s
    for no key update skip locked
)
update duly.api_keys k set last_used_at = duly.now()
from free where k.org_id = free.org_id and k.key_id = free.key_id
