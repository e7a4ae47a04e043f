-- Retention: partitions, expired rows and released blobs, in bounded batches.

-- name: ensure_partitions
-- Create the coming partitions. Locks: default partitions, for two seconds at most.
select duly.ensure_partitions()

-- name: drop_expired_partitions
-- Drop one expired partition that is not needed, or return why it stays; delete old rows of the default partition.
-- Locks: the parent, waited for two seconds at most; then its partition, if no other transaction uses it.
select * from duly.drop_expired_partitions(%(parent)s, %(keep)s)

-- name: store_key_answers
-- Write the final status of old jobs to the live idempotency keys that point to them, so that the jobs can be dropped.
-- The view derives what a key answers; afterwards the key stores it, and itself. An ended job never changes.
-- Locks: rows of the ledger, skipping those that an enqueue locks. Index: primary keys, one lookup per key.
with due as materialized (
    select l.org_id, l.key_hash from duly.key_ledger l
    cross join lateral (
        select from duly.state_of(l.org_id, l.job_id) s where s.finished_at is not null limit 1) s
    where l.job_id < duly.uuid7_floor(duly.now() - %(keep)s::interval)
      and l.final_status is null and l.expires_at > duly.now()
    limit %(limit)s
    for update of l skip locked
)
update duly.key_ledger l
set final_status = k.status, result_ref = k.result_ref, error_ref = k.error_ref, idempotency_key = k.idempotency_key
from due d
cross join lateral (
    select k.* from duly.idempotency_keys k where k.org_id = d.org_id and k.key_hash = d.key_hash limit 1) k
where l.org_id = d.org_id and l.key_hash = d.key_hash

-- name: delete_expired_ledger
-- Delete expired idempotency keys, whatever the status of their job: such a key is free again.
-- Locks: the rows, skipping those that an enqueue takes over. Index: key_ledger_expiry, then the primary key.
with old as materialized (
    select l.org_id, l.key_hash from duly.key_ledger l
    where l.expires_at <= duly.now() limit %(limit)s for update skip locked
)
delete from duly.key_ledger l using old o
where l.org_id = o.org_id and l.key_hash = o.key_hash

-- name: expire_orphaned_artifacts
-- Expire the artifacts of deleted jobs: an artifact lives no longer than its job.
-- Locks: the rows, skipping locked ones. Index: the unique key, then the primary key of the records.
with old as materialized (
    select a.org_id, a.artifact_id from duly.artifacts a
    where a.job_id < duly.uuid7_floor(duly.now() - %(keep)s::interval)
      and (a.expires_at is null or a.expires_at > duly.now())
      and not exists (select from duly.job_records r where r.org_id = a.org_id and r.job_id = a.job_id)
    limit %(limit)s for update skip locked
)
update duly.artifacts a set expires_at = duly.now()
from old o where a.org_id = o.org_id and a.artifact_id = o.artifact_id

-- name: delete_expired_artifacts
-- Delete expired artifacts and release their blobs, which are removed once no row references them.
-- Locks: the rows, skipping locked ones. Index: artifacts_expiry, then the primary key.
with old as materialized (
    select a.org_id, a.artifact_id from duly.artifacts a
    where a.expires_at <= duly.now() order by a.expires_at limit %(limit)s for update skip locked
), gone as (
    delete from duly.artifacts a using old o where a.org_id = o.org_id and a.artifact_id = o.artifact_id
    returning a.org_id, a.blob_ref
), released as (
    insert into duly.released_blobs (blob_ref)
    select distinct g.blob_ref from gone g where g.blob_ref like 'blob:' || g.org_id || '/%%'
    on conflict (blob_ref) do update set released_at = excluded.released_at
)
select count(*) from gone

-- name: list_released_blobs
-- Return released blobs and whether a row of their org references them again; those are taken off the list.
-- Locks: only the rows taken off, unless they were released again meanwhile; two runs at once would only read twice.
-- Index: released_blobs_oldest, then those by blob.
with oldest as materialized (
    select b.blob_ref, b.released_at, split_part(substr(b.blob_ref, 6), '/', 1)::uuid as org_id
    from duly.released_blobs b order by b.released_at limit %(limit)s
), checked as materialized (
    select o.blob_ref, o.released_at,
           exists (select from duly.named_blobs n where n.org_id = o.org_id and n.blob_ref = o.blob_ref) as named
    from oldest o
), removed as (
    delete from duly.released_blobs b using checked l
    where b.blob_ref = l.blob_ref and b.released_at = l.released_at and l.named
)
select l.blob_ref, l.named from checked l

-- name: delete_released_blobs
-- Delete the rows of blobs that were removed from the store. Index: the primary key.
delete from duly.released_blobs where blob_ref = any (%(blob_refs)s)

-- name: delete_old_notifications
-- Delete notifications that were sent, failed or suppressed long ago.
-- Locks: the rows, skipping locked ones. Index: notifications_by_status, then the primary key.
with old as materialized (
    select n.org_id, n.notification_id from duly.notifications n
    where n.delivery_status in ('sent', 'failed', 'suppressed') and n.scheduled_at < duly.now() - %(keep)s::interval
    limit %(limit)s for update skip locked
)
delete from duly.notifications n using old o where n.org_id = o.org_id and n.notification_id = o.notification_id

-- name: delete_old_subscriptions
-- Delete subscriptions of single jobs that ended or were deleted long ago.
-- Locks: the rows, skipping locked ones. Index: subscriptions_of_job, then the primary keys.
with old as materialized (
    select s.org_id, s.subscription_id from duly.subscriptions s
    left join lateral (select x.job_id, x.finished_at from duly.state_of(s.org_id, s.job_id) x limit 1) t on true
    where s.job_id is not null and s.created_at < duly.now() - %(keep)s::interval
      and case when t.job_id is null
               then not exists (select from duly.job_records r where r.org_id = s.org_id and r.job_id = s.job_id)
               else t.finished_at < duly.now() - %(keep)s::interval end
    limit %(limit)s for update of s skip locked
)
delete from duly.subscriptions s using old o where s.org_id = o.org_id and s.subscription_id = o.subscription_id

-- name: delete_old_alerts
-- Delete alerts that were resolved long ago; those of dead letters are deleted with the dead letters.
-- Locks: the rows, skipping locked ones. Index: alerts_over.
delete from duly.alerts a using (
    select o.org_id, o.alert_id from duly.alerts o
    where o.kind <> 'dead_letter' and o.resolved_at < duly.now() - %(keep)s::interval
    limit %(limit)s for update skip locked
) old
where a.org_id = old.org_id and a.alert_id = old.alert_id

-- name: delete_expired_secrets
-- Delete expired webhook secrets. Every endpoint has a few, so all of them are read.
-- Locks: the rows, skipping locked ones. Index: none, then the primary key.
with old as materialized (
    select s.org_id, s.endpoint_id, s.secret_id from duly.webhook_secrets s
    where s.expires_at <= duly.now() limit %(limit)s for update skip locked
)
delete from duly.webhook_secrets s using old o
where s.org_id = o.org_id and s.endpoint_id = o.endpoint_id and s.secret_id = o.secret_id

-- name: delete_expired_sessions
-- Delete expired sessions.
-- Locks: the rows, skipping locked ones. Index: sessions_expiry, then the primary key.
with old as materialized (
    select s.org_id, s.session_hash from duly.sessions s
    where s.expires_at <= duly.now() order by s.expires_at limit %(limit)s for update skip locked
)
delete from duly.sessions s using old o where s.org_id = o.org_id and s.session_hash = o.session_hash

-- name: delete_old_queue_stats
-- Delete old per-minute statistics of queues.
-- Locks: the rows, skipping locked ones. Index: the primary key, which begins with the minute.
with old as materialized (
    select q.minute, q.queue, q.recorder_id from duly.queue_minutes q
    where q.minute < duly.now() - %(keep)s::interval
    order by q.minute limit %(limit)s for update skip locked
)
delete from duly.queue_minutes q using old o
where q.minute = o.minute and q.queue = o.queue and q.recorder_id = o.recorder_id

-- name: delete_gone_workers
-- Delete workers that stopped or were lost long ago. One whose claims are not settled yet stays.
-- Locks: the rows, skipping locked ones. Index: workers are few.
with old as materialized (
    select w.worker_id from duly.workers w
    where coalesce(w.stopped_at, w.lost_at) < duly.now() - %(keep)s::interval
      and not exists (select from duly.claims c where c.worker_id = w.worker_id)
    limit %(limit)s for update skip locked
)
delete from duly.workers w using old o where w.worker_id = o.worker_id
