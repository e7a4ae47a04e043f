-- name: fire
-- Purpose: fire an alert for each condition, or update the open one; returns whether it is new.
-- Index: alerts_open, which is the fence: one open alert per kind and target.
insert into duly.alerts as a (org_id, alert_id, kind, target, severity, summary, detail, measured, threshold)
select f.org_id, duly.uuid7(), f.kind, f.target, f.severity, f.summary, f.detail, f.measured, f.threshold
from jsonb_to_recordset(%(firing)s) f(
    org_id uuid, kind text, target text, severity text, summary text, detail jsonb, measured float8, threshold float8)
on conflict (org_id, kind, target) where resolved_at is null do update set
    severity = excluded.severity, summary = excluded.summary, detail = excluded.detail,
    measured = excluded.measured, threshold = excluded.threshold, seen_at = duly.now()
returning a.*, a.xmax = 0 as is_new

-- name: fire_dead_letters
-- Purpose: fire an alert for each dead letter that has none, already resolved if the dead letter is; returns how many.
-- Index: dead_letters_to_alert. Locks: the dead letters, skipping those that are being resolved.
-- Fence: alerts_of_dead_letters; a job becomes a dead letter once.
with unalerted as materialized (
    select d.org_id, d.job_id from duly.dead_letters d
    where d.alerted_at is null
    order by d.dead_at
    limit %(limit)s
    for update skip locked
), marked as (
    update duly.dead_letters d set alerted_at = duly.now()
    from unalerted u
    where d.org_id = u.org_id and d.job_id = u.job_id
    returning d.*
), fired as (
    insert into duly.alerts (
        org_id, alert_id, kind, target, severity, summary, detail, fired_at, resolved_at)
    select m.org_id, duly.uuid7(), 'dead_letter', m.job_id::text, 'critical',
           m.job_type || ' is a dead letter: ' || m.error_code,
           jsonb_build_object('job_type', m.job_type, 'queue', m.queue, 'error_code', m.error_code,
                              'error_class', m.error_class, 'attempts', m.attempts, 'fingerprint', m.fingerprint),
           m.dead_at, m.resolved_at
    from marked m
    on conflict do nothing
)
select count(*) as fired from unalerted

-- name: resolve
-- Purpose: resolve the alerts that did not fire for a while. Index: alerts_to_watch.
update duly.alerts a set resolved_at = duly.now()
where a.kind <> 'dead_letter' and a.resolved_at is null and a.seen_at < duly.now() - %(quiet_for)s::interval
returning a.*

-- name: resolve_dead_letters
-- Purpose: of the next open alerts of dead letters, resolve those whose dead letter is resolved or gone: processes of an
-- older release resolve dead letters without their alerts. Returns the last alert that was checked.
-- Index: alerts_open; the primary keys.
with checked as materialized (
    select a.org_id, a.alert_id, a.target from duly.alerts a
    where a.resolved_at is null and a.kind = 'dead_letter'
      and (a.org_id, a.kind, a.target) > (%(org_id)s, 'dead_letter', %(target)s)
    order by a.org_id, a.kind, a.target
    limit %(limit)s
), resolved as (
    update duly.alerts a set resolved_at = coalesce(d.resolved_at, duly.now()), seen_at = duly.now()
    from checked c
    left join duly.dead_letters d on d.org_id = c.org_id and d.job_id = c.target::uuid
    where a.org_id = c.org_id and a.alert_id = c.alert_id and a.resolved_at is null
      and (d.job_id is null or d.resolved_at is not null)
)
select c.org_id, c.target from checked c order by c.org_id desc, c.target desc limit 1

-- name: try_lock
-- Purpose: lock the alerts until the end of the transaction; false if another alerter has the lock.
-- Locks: an advisory one of the transaction.
select pg_try_advisory_xact_lock(hashtextextended('duly.alerts', 0)) as locked

-- name: count_dead
-- Purpose: count the jobs that became dead letters since a time by queue, up to `limit`.
-- Index: event_log_rare; the primary key of the records.
with dead as materialized (
    select e.org_id, e.job_id from duly.event_log e
    where e.event_type = 'job.deadlettered' and e.occurred_at >= duly.now() - %(since)s::interval
    limit %(limit)s
)
select r.queue, count(*) as jobs
from dead d
cross join lateral (
    select r.queue from duly.job_records r where r.org_id = d.org_id and r.job_id = d.job_id limit 1) r
group by r.queue

-- name: list
-- Purpose: list a page of the alerts of the session's org, newest first. Index: alerts_by_time.
select a.* from duly.alerts a
where a.org_id = %(org_id)s and (a.fired_at, a.alert_id) < (%(before_at)s, %(before_id)s)
  and (%(kind)s::text is null or a.kind = %(kind)s)
  and (%(everything)s or a.resolved_at is null)
order by a.fired_at desc, a.alert_id desc
limit %(limit)s

-- name: list_failing_endpoints
-- Purpose: list the webhook endpoints of all orgs whose circuit breaker is open, or that Duly disabled. Endpoints are few.
select e.org_id, e.endpoint_id, e.url, e.failures, e.disabled_at is not null as disabled
from duly.webhook_endpoints e
where (e.disabled_at is null and e.failing_since is not null and e.shut_until is not null)
   or (e.disabled_at is not null and e.disabled_by = 'system:duly')
order by e.failing_since
limit %(limit)s

-- name: list_open
-- Purpose: list the open alerts of all orgs and of the installation, without dead letters, which are shown by kind.
-- Index: alerts_to_watch.
select a.* from duly.alerts a
where a.kind <> 'dead_letter' and a.resolved_at is null
order by a.seen_at desc
limit %(limit)s

-- name: list_open_of_org
-- Purpose: list the open alerts of the session's org, without dead letters, which are shown by kind.
-- Index: alerts_open, before and after the dead letters, which may be many.
(select a.* from duly.alerts a
 where a.org_id = %(org_id)s and a.resolved_at is null and a.kind < 'dead_letter' order by a.kind, a.target limit %(limit)s)
union all
(select a.* from duly.alerts a
 where a.org_id = %(org_id)s and a.resolved_at is null and a.kind > 'dead_letter' order by a.kind, a.target limit %(limit)s)

-- name: list_unnotified
-- Purpose: list the alerts of an org whose start or end was not notified. Index: alerts_to_tell. Locks: their rows.
select a.* from duly.alerts a
where a.org_id = %(org_id)s and a.kind <> 'dead_letter'
  and (a.told_at is null or (a.resolved_at is not null and a.told_end_at is null))
order by a.fired_at
limit %(limit)s
for update

-- name: mark_notified
-- Purpose: record that alerts were notified in their current state. Index: the primary key.
-- Locks: their rows, which the caller holds.
update duly.alerts a set
    told_at = coalesce(a.told_at, duly.now()),
    told_end_at = case when a.resolved_at is not null then coalesce(a.told_end_at, duly.now()) end
where a.org_id = %(org_id)s and a.alert_id = any (%(alert_ids)s)

-- name: read_worker_presence
-- Purpose: count the living workers, and read the time since the last heartbeat of any. Workers are few.
select count(*) filter (
           where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()) as workers,
       duly.now() - max(greatest(w.heartbeat_at, w.stopped_at)) as silence
from duly.workers w
