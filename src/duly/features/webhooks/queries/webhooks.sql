-- name: create
-- Purpose: create an endpoint. Under the lock of the org, so that its endpoints can be counted before.
insert into duly.webhook_endpoints (org_id, endpoint_id, url, description, event_types, job_types, created_by)
values (%(org_id)s, duly.uuid7(), %(url)s, %(description)s, %(event_types)s, %(job_types)s, %(created_by)s)
returning endpoint_id

-- name: read
-- Purpose: read an endpoint of an org. Index: the primary keys.
-- Its secrets are not read: only until when an old one still signs.
select e.org_id, e.endpoint_id, e.url, e.description, e.event_types, e.job_types, e.created_by, e.created_at, e.updated_at,
       e.disabled_at, e.disabled_by, e.disable_reason, e.failures, e.failing_since, e.shut_until,
       (select max(s.expires_at) from duly.webhook_secrets s
        where s.org_id = e.org_id and s.endpoint_id = e.endpoint_id and s.expires_at > duly.now()) as old_secret_until
from duly.webhook_endpoints e
where e.org_id = %(org_id)s and e.endpoint_id = %(endpoint_id)s

-- name: list
-- Purpose: list the endpoints of an org, oldest first. Index: the primary keys.
-- Their secrets are not read: only until when an old one still signs.
select e.org_id, e.endpoint_id, e.url, e.description, e.event_types, e.job_types, e.created_by, e.created_at, e.updated_at,
       e.disabled_at, e.disabled_by, e.disable_reason, e.failures, e.failing_since, e.shut_until,
       (select max(s.expires_at) from duly.webhook_secrets s
        where s.org_id = e.org_id and s.endpoint_id = e.endpoint_id and s.expires_at > duly.now()) as old_secret_until
from duly.webhook_endpoints e
where e.org_id = %(org_id)s and e.endpoint_id > %(after)s
order by e.endpoint_id
limit %(limit)s

-- name: count
-- Purpose: count the endpoints of an org. Index: the primary key.
select count(*) as endpoints from duly.webhook_endpoints where org_id = %(org_id)s

-- name: lock
-- Purpose: lock an endpoint of an org for a change. Index: the primary key.
-- Locks: its row, against other changes; the relay can still write deliveries to it.
select endpoint_id from duly.webhook_endpoints
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
for no key update

-- name: lock_against_deletion
-- Purpose: lock an endpoint of an org while deliveries to it are written. Index: the primary key.
-- Locks: its row, against deletion only.
select endpoint_id from duly.webhook_endpoints
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
for key share

-- name: update
-- Purpose: update the URL, the description and the filters of an endpoint. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    url = %(url)s, description = %(description)s, event_types = %(event_types)s, job_types = %(job_types)s,
    updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: disable
-- Purpose: disable an endpoint. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    disabled_at = duly.now(), disabled_by = %(by)s, disable_reason = %(reason)s, updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: enable
-- Purpose: enable an endpoint, and close its circuit breaker. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    disabled_at = null, disabled_by = null, disable_reason = null, failures = 0, failing_since = null, shut_until = null,
    updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: delete
-- Purpose: delete an endpoint with its secrets. Index: the primary key.
-- Locks: its row; waits for a relay that writes deliveries to it, so that none is written later.
delete from duly.webhook_endpoints where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: add_secret
-- Purpose: add a secret that signs from now on. Only the engine can read it.
insert into duly.webhook_secrets (org_id, endpoint_id, secret_id, secret)
values (%(org_id)s, %(endpoint_id)s, duly.uuid7(), %(secret)s)

-- name: expire_secrets
-- Purpose: let the secrets of an endpoint expire after the overlap. Under the lock of the endpoint.
-- Index: the primary key.
update duly.webhook_secrets set expires_at = least(expires_at, duly.now() + %(overlap)s::interval)
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: delete_expired_secrets
-- Purpose: delete the expired secrets of an endpoint; returns the number of the others. Index: the primary key.
with expired as (
    delete from duly.webhook_secrets
    where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and expires_at <= duly.now()
)
select count(*) as secrets from duly.webhook_secrets
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and (expires_at is null or expires_at > duly.now())
