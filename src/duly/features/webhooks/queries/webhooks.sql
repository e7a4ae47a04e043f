-- name: add_secret
-- Purpose: a secret that signs from now on. Only the engine reads it.
insert into duly.webhook_secrets (org_id, endpoint_id, secret_id, secret)
values (%(org_id)s, %(endpoint_id)s, duly.uuid7(), %(secret)s)

-- name: change
-- Purpose: another definition of an endpoint. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    url = %(url)s, description = %(description)s, event_types = %(event_types)s, job_types = %(job_types)s,
    updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: count
-- Purpose: how many endpoints an org has. Index: the primary key.
select count(*) as endpoints from duly.webhook_endpoints where org_id = %(org_id)s

-- name: create
-- Purpose: keep a new endpoint. Under the lock of the org, so that its endpoints can be counted before.
insert into duly.webhook_endpoints (org_id, endpoint_id, url, description, event_types, job_types, created_by)
values (%(org_id)s, duly.uuid7(), %(url)s, %(description)s, %(event_types)s, %(job_types)s, %(created_by)s)
returning endpoint_id

-- name: disable
-- Purpose: send nothing to an endpoint any more. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    disabled_at = duly.now(), disabled_by = %(by)s, disable_reason = %(reason)s, updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: drop_secrets
-- Purpose: forget the secrets of an endpoint that sign no longer; how many others there are. Index: the primary key.
with gone as (
    delete from duly.webhook_secrets
    where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and expires_at <= duly.now()
)
select count(*) as secrets from duly.webhook_secrets
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and (expires_at is null or expires_at > duly.now())

-- name: enable
-- Purpose: send to an endpoint again; its failures are forgotten. Under its lock. Index: the primary key.
update duly.webhook_endpoints set
    disabled_at = null, disabled_by = null, disable_reason = null, failures = 0, failing_since = null, shut_until = null,
    updated_at = duly.now()
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: expire_secrets
-- Purpose: let the secrets of an endpoint sign no longer than the overlap. Under the endpoint's lock.
-- Index: the primary key.
update duly.webhook_secrets set expires_at = least(expires_at, duly.now() + %(overlap)s::interval)
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: floor
-- Purpose: where a look at so many messages to an endpoint before a place ends; nothing if there are fewer.
-- Index: webhook_deliveries_by_time.
select created_at, job_id, event_seq
from duly.webhook_deliveries
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
  and (created_at, job_id, event_seq) < (%(before_at)s, %(before_job)s, %(before_seq)s)
order by created_at desc, job_id desc, event_seq desc
offset %(look)s - 1 limit 1

-- name: hold
-- Purpose: hold an endpoint of an org to which messages are written. Index: the primary key.
-- Locks: its row, against removal only.
select endpoint_id from duly.webhook_endpoints
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
for key share

-- name: lock
-- Purpose: hold an endpoint of an org for a change. Index: the primary key.
-- Locks: its row, against other such changes; events are relayed to it meanwhile.
select endpoint_id from duly.webhook_endpoints
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
for no key update

-- name: read
-- Purpose: one endpoint of an org. Index: the primary keys.
-- Its secrets are not read: only until when an old one still signs.
select e.org_id, e.endpoint_id, e.url, e.description, e.event_types, e.job_types, e.created_by, e.created_at, e.updated_at,
       e.disabled_at, e.disabled_by, e.disable_reason, e.failures, e.failing_since, e.shut_until,
       (select max(s.expires_at) from duly.webhook_secrets s
        where s.org_id = e.org_id and s.endpoint_id = e.endpoint_id and s.expires_at > duly.now()) as old_secret_until
from duly.webhook_endpoints e
where e.org_id = %(org_id)s and e.endpoint_id = %(endpoint_id)s

-- name: read_delivery
-- Purpose: one message to an endpoint. Index: the primary key.
select org_id, endpoint_id, job_id, event_seq, event_type, data is null as about_a_job, notification_id, status, tries, try_log,
       due_at, created_at, ended_at
from duly.webhook_deliveries
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and job_id = %(job_id)s and event_seq = %(event_seq)s

-- name: remove
-- Purpose: remove an endpoint with its secrets. Index: the primary key.
-- Locks: its row; waits for a relay that writes messages to it, so that none is written after.
delete from duly.webhook_endpoints where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s

-- name: resend
-- Purpose: send messages again, at once and with as many tries as a new one has. Under their locks. Index: the primary key.
update duly.webhook_deliveries d set
    status = 'pending', tries = 0, due_at = duly.now(), ended_at = null, held_by = null, held_until = null,
    follows = k.follows
from unnest(%(job_ids)s::uuid[], %(seqs)s::integer[], %(follows)s::boolean[]) as k(job_id, event_seq, follows)
where d.org_id = %(org_id)s and d.endpoint_id = %(endpoint_id)s and d.job_id = k.job_id and d.event_seq = k.event_seq

-- name: write_test
-- Purpose: a message that is about no job, to be sent at once. Under the lock of the endpoint.
insert into duly.webhook_deliveries (org_id, endpoint_id, job_id, event_seq, event_type, data, due_at)
values (%(org_id)s, %(endpoint_id)s, duly.uuid7(), 1, %(event_type)s, %(data)s, duly.now())
returning org_id, endpoint_id, job_id, event_seq, event_type, data is null as about_a_job, notification_id, status, tries, try_log,
          due_at, created_at, ended_at
