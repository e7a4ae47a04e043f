-- name: has_endpoints
-- Purpose: whether any endpoint is enabled. Most installations have no webhooks, and ask this once a second.
select exists (select from duly.webhook_endpoints where disabled_at is null)

-- name: read_messages
-- Purpose: read the contents of leased deliveries, their URLs, and the secrets that sign them. The event as it was; of its
-- job only what never changes, and its outcome if this event ended it. Index: the primary keys.
select k.n, p.url, e.event_seq, e.status, e.attempt, e.occurred_at,
       r.job_type, r.project_id, r.subject_id, r.request_id, r.correlation_id,
       nullif(split_part(r.traceparent, '-', 2), '') as trace_id, r.result_id, coalesce(t.outcome, 'pending') as outcome,
       coalesce(t.error_code, e.payload ->> 'error_code') as error_code, coalesce(t.partial_count, 0) as partial_count,
       array(select s.secret from duly.webhook_secrets s
             where s.org_id = k.org_id and s.endpoint_id = k.endpoint_id and (s.expires_at is null or s.expires_at > duly.now())
             order by s.secret_id desc) as secrets
from unnest(%(org_ids)s::uuid[], %(endpoint_ids)s::uuid[], %(job_ids)s::uuid[], %(seqs)s::integer[])
    with ordinality as k(org_id, endpoint_id, job_id, event_seq, n)
join duly.webhook_endpoints p on p.org_id = k.org_id and p.endpoint_id = k.endpoint_id
left join lateral (
    select x.* from duly.events_of(k.org_id, k.job_id) x where x.event_seq = k.event_seq limit 1) e on true
left join duly.job_records r on r.org_id = e.org_id and r.job_id = e.job_id
left join lateral (
    select x.* from duly.state_of(e.org_id, e.job_id) x where e.status in ('completed', 'failed', 'canceled') limit 1) t on true

-- name: settle
-- Purpose: write the results of attempts. A delivery that is not returned was leased by another process, or resent.
-- Fence: held_by. Locks: the deliveries, in the order of their keys. Index: the primary key.
with result as materialized (
    select * from json_to_recordset(%(results)s::json) as r(
        org_id uuid, endpoint_id uuid, job_id uuid, event_seq integer, status text, retry_in double precision, entry jsonb)
), held as materialized (
    select r.*
    from result r
    join duly.webhook_deliveries d
        on d.org_id = r.org_id and d.endpoint_id = r.endpoint_id and d.job_id = r.job_id and d.event_seq = r.event_seq
    where d.held_by = %(holder)s
    order by r.org_id, r.endpoint_id, r.job_id, r.event_seq
    for update of d
)
update duly.webhook_deliveries d set
    status = h.status,
    tries = d.tries + 1,
    try_log = (
        select jsonb_agg(l.entry order by l.n) from jsonb_array_elements(d.try_log || h.entry) with ordinality l(entry, n)
        where l.n > jsonb_array_length(d.try_log) + 1 - %(max_log_entries)s),
    due_at = duly.now() + make_interval(secs => coalesce(h.retry_in, 0)),
    held_by = null,
    held_until = null,
    ended_at = case when h.status <> 'pending' then duly.now() end
from held h
where d.org_id = h.org_id and d.endpoint_id = h.endpoint_id and d.job_id = h.job_id and d.event_seq = h.event_seq
returning d.org_id, d.endpoint_id, d.job_id, d.event_seq, d.status, d.notification_id, d.tries, h.entry ->> 'error' as error

-- name: release_followers
-- Purpose: release the deliveries that follow these, each the next of its job. After the statement that ended them, by one
-- of its own: so it sees every delivery that was written before that. Locks: their rows, in the order of their keys.
-- Index: the primary key.
with next as materialized (
    select d.org_id, d.endpoint_id, d.job_id, d.event_seq
    from unnest(%(org_ids)s::uuid[], %(endpoint_ids)s::uuid[], %(job_ids)s::uuid[], %(seqs)s::integer[])
        as k(org_id, endpoint_id, job_id, event_seq)
    cross join lateral (
        select n.event_seq from duly.webhook_deliveries n
        where n.org_id = k.org_id and n.endpoint_id = k.endpoint_id and n.job_id = k.job_id and n.event_seq > k.event_seq
        order by n.event_seq limit 1
    ) n
    join duly.webhook_deliveries d
        on d.org_id = k.org_id and d.endpoint_id = k.endpoint_id and d.job_id = k.job_id and d.event_seq = n.event_seq
    where d.status = 'pending' and d.follows
    order by d.org_id, d.endpoint_id, d.job_id, d.event_seq
    for update of d
)
update duly.webhook_deliveries d set follows = false, due_at = duly.now()
from next n
where d.org_id = n.org_id and d.endpoint_id = n.endpoint_id and d.job_id = n.job_id and d.event_seq = n.event_seq

-- name: release
-- Purpose: release the leases of deliveries that are not sent. Fence: held_by. Locks: the deliveries, in the order of
-- their keys. Index: the primary key.
with held as materialized (
    select d.org_id, d.endpoint_id, d.job_id, d.event_seq
    from unnest(%(org_ids)s::uuid[], %(endpoint_ids)s::uuid[], %(job_ids)s::uuid[], %(seqs)s::integer[])
        as k(org_id, endpoint_id, job_id, event_seq)
    join duly.webhook_deliveries d
        on d.org_id = k.org_id and d.endpoint_id = k.endpoint_id and d.job_id = k.job_id and d.event_seq = k.event_seq
    where d.held_by = %(holder)s
    order by d.org_id, d.endpoint_id, d.job_id, d.event_seq
    for update of d
)
update duly.webhook_deliveries d set held_by = null, held_until = null, due_at = duly.now()
from held h
where d.org_id = h.org_id and d.endpoint_id = h.endpoint_id and d.job_id = h.job_id and d.event_seq = h.event_seq

-- name: update_notifications
-- Purpose: update the notifications that these deliveries carried. A sent notification stays sent: its delivery may have
-- been resent by a user. Locks: the notifications, in the order of their keys. Index: the primary key.
with carried as materialized (
    select k.*
    from unnest(%(org_ids)s::uuid[], %(notification_ids)s::uuid[], %(statuses)s::text[], %(attempts)s::integer[], %(errors)s::text[])
        as k(org_id, notification_id, status, attempts, error)
    join duly.notifications n on n.org_id = k.org_id and n.notification_id = k.notification_id
    where n.delivery_status <> 'sent'
    order by k.org_id, k.notification_id
    for no key update of n
)
update duly.notifications n set
    delivery_status = case k.status when 'delivered' then 'sent' when 'failed' then 'failed' else n.delivery_status end,
    attempt_count = k.attempts,
    last_error = k.error,
    sent_at = case when k.status = 'delivered' then duly.now() else n.sent_at end
from carried k
where n.org_id = k.org_id and n.notification_id = k.notification_id

-- name: update_breakers
-- Purpose: update the circuit breakers of endpoints after attempts; returns which opened, and which endpoints have failed
-- for too long, or are gone. Failures count up to the threshold that opens a breaker; attempts that were in flight then
-- do not count. After that only the probe counts, and each failed probe doubles the pause. One success closes it.
-- Locks: the endpoints, in the order of their keys. Index: the primary key.
with attempted as materialized (
    select a.org_id, a.endpoint_id, bool_or(a.delivered) as succeeded,
           count(*) filter (where not a.delivered)::integer as failed,
           bool_or(a.is_probe and not a.delivered) as probe_failed, bool_or(a.gone) as gone
    from json_to_recordset(%(attempts)s::json) as a(
        org_id uuid, endpoint_id uuid, delivered boolean, is_probe boolean, gone boolean)
    group by a.org_id, a.endpoint_id
), counted as materialized (
    select t.*, f.failures as before,
           case when t.succeeded then 0
                when t.probe_failed then f.failures + 1
                else greatest(f.failures, least(f.failures + t.failed, %(threshold)s)) end as failures
    from attempted t
    join duly.webhook_endpoints f on f.org_id = t.org_id and f.endpoint_id = t.endpoint_id
    where not t.succeeded or t.gone or f.failures > 0 or f.failing_since is not null
    order by t.org_id, t.endpoint_id
    for no key update of f
)
update duly.webhook_endpoints e set
    failures = k.failures,
    failing_since = case when not k.succeeded then coalesce(e.failing_since, duly.now()) end,
    shut_until = case
        when k.failures < %(threshold)s then null
        when k.failures > k.before then duly.now() + least(
            %(min_pause)s::interval * power(2, least(k.failures - %(threshold)s, 20)), %(max_pause)s::interval)
        else e.shut_until end
from counted k
where e.org_id = k.org_id and e.endpoint_id = k.endpoint_id
returning e.org_id, e.endpoint_id, k.gone, k.failures > k.before and k.failures >= %(threshold)s as opened,
          e.disabled_at is null and (k.gone or e.failing_since <= duly.now() - %(disable_after)s::interval) as must_disable

-- name: list
-- Purpose: list the deliveries to an endpoint between two positions, newest first. Index: webhook_deliveries_by_time.
select org_id, endpoint_id, job_id, event_seq, event_type, data is null as is_job_event, notification_id, status, tries, try_log,
       due_at, created_at, ended_at
from duly.webhook_deliveries
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
  and (created_at, job_id, event_seq) < (%(before_at)s, %(before_job)s, %(before_seq)s)
  and (created_at, job_id, event_seq) >= (%(floor_at)s, %(floor_job)s, %(floor_seq)s)
  and (%(status)s::text is null or status = %(status)s)
  and (%(event_type)s::text is null or event_type = %(event_type)s)
  and (%(job_id)s::uuid is null or job_id = %(job_id)s)
order by created_at desc, job_id desc, event_seq desc
limit %(limit)s

-- name: find_scan_end
-- Purpose: find the position where a scan of so many deliveries to an endpoint ends; no row if there are fewer.
-- Index: webhook_deliveries_by_time.
select created_at, job_id, event_seq
from duly.webhook_deliveries
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
  and (created_at, job_id, event_seq) < (%(before_at)s, %(before_job)s, %(before_seq)s)
order by created_at desc, job_id desc, event_seq desc
offset %(max_scanned)s - 1 limit 1

-- name: read
-- Purpose: read a delivery to an endpoint. Index: the primary key.
select org_id, endpoint_id, job_id, event_seq, event_type, data is null as is_job_event, notification_id, status, tries, try_log,
       due_at, created_at, ended_at
from duly.webhook_deliveries
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and job_id = %(job_id)s and event_seq = %(event_seq)s

-- name: count_pending
-- Purpose: count the pending deliveries of endpoints up to a limit, and read when the first is due. Deliveries that follow
-- another of the same job are not counted. Index: webhook_deliveries_due.
select k.endpoint_id, count(w.due_at) as pending, min(w.due_at) as next_at
from unnest(%(endpoint_ids)s::uuid[]) k(endpoint_id)
cross join lateral (
    select d.due_at from duly.webhook_deliveries d
    where d.org_id = %(org_id)s and d.endpoint_id = k.endpoint_id and d.status = 'pending' and not d.follows
    order by d.due_at
    limit %(limit)s
) w
group by k.endpoint_id

-- name: create_test
-- Purpose: create a delivery that is not about a job, due at once. Under the lock of the endpoint.
insert into duly.webhook_deliveries (org_id, endpoint_id, job_id, event_seq, event_type, data, due_at)
values (%(org_id)s, %(endpoint_id)s, duly.uuid7(), 1, %(event_type)s, %(data)s, duly.now())
returning org_id, endpoint_id, job_id, event_seq, event_type, data is null as is_job_event, notification_id, status, tries, try_log,
          due_at, created_at, ended_at

-- name: lock_for_resend
-- Purpose: lock a delivery to be resent, unless it is leased; returns whether the previous one of the same job is pending.
-- That is read under a lock, as in deliveries/create: a process that ends the previous one waits.
-- Locks: its row, and the previous one. Index: the primary key.
with locked as materialized (
    select d.org_id, d.endpoint_id, d.job_id, d.event_seq from duly.webhook_deliveries d
    where d.org_id = %(org_id)s and d.endpoint_id = %(endpoint_id)s and d.job_id = %(job_id)s and d.event_seq = %(event_seq)s
      and (d.held_until is null or d.held_until <= duly.now())
    for update
)
select c.job_id, c.event_seq, p.event_seq as previous_seq, coalesce(p.pending, false) as previous_pending
from locked c
left join lateral (
    select d.event_seq, d.status = 'pending' as pending from duly.webhook_deliveries d
    where d.org_id = c.org_id and d.endpoint_id = c.endpoint_id and d.job_id = c.job_id and d.event_seq < c.event_seq
    order by d.event_seq desc limit 1
    for share
) p on true

-- name: lock_failed_for_resend
-- Purpose: lock failed deliveries to be resent, oldest first; returns whether the previous one of each, of the same job, is
-- pending. That is read under a lock, as in deliveries/create.
-- Locks: the deliveries, skipping those that are being resent; then the previous ones, in the order of their keys.
-- Index: webhook_deliveries_by_time; the primary key.
with locked as materialized (
    select d.org_id, d.endpoint_id, d.job_id, d.event_seq from duly.webhook_deliveries d
    where d.org_id = %(org_id)s and d.endpoint_id = %(endpoint_id)s and d.status = 'failed' and d.created_at >= %(since)s
    order by d.created_at, d.job_id, d.event_seq
    limit %(limit)s
    for update skip locked
)
select c.job_id, c.event_seq, p.event_seq as previous_seq, coalesce(p.pending, false) as previous_pending
from (select * from locked order by job_id, event_seq) c
left join lateral (
    select d.event_seq, d.status = 'pending' as pending from duly.webhook_deliveries d
    where d.org_id = c.org_id and d.endpoint_id = c.endpoint_id and d.job_id = c.job_id and d.event_seq < c.event_seq
    order by d.event_seq desc limit 1
    for share
) p on true

-- name: resend
-- Purpose: make deliveries pending again, due at once and with as many attempts as new ones. Under their locks.
-- Index: the primary key.
update duly.webhook_deliveries d set
    status = 'pending', tries = 0, due_at = duly.now(), ended_at = null, held_by = null, held_until = null,
    follows = k.follows
from unnest(%(job_ids)s::uuid[], %(seqs)s::integer[], %(follows)s::boolean[]) as k(job_id, event_seq, follows)
where d.org_id = %(org_id)s and d.endpoint_id = %(endpoint_id)s and d.job_id = k.job_id and d.event_seq = k.event_seq

-- name: delete_pending
-- Purpose: delete the next deliveries to a deleted endpoint, so that no claim meets them again; notifications among them
-- have failed. Deliveries that follow them are never released, and are dropped with their partition.
-- Locks: the deliveries, then the notifications. Index: webhook_deliveries_due; the primary key.
with deleted as (
    delete from duly.webhook_deliveries
    where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and status = 'pending' and not follows
    returning org_id, notification_id
)
update duly.notifications n set delivery_status = 'failed', last_error = 'the webhook was deleted'
from deleted d
where n.org_id = d.org_id and n.notification_id = d.notification_id and n.delivery_status = 'pending'
