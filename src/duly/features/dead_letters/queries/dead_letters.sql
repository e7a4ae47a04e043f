-- name: list
-- Purpose: list the dead letters of the session's org, newest first. Index: dead_letters_by_time; the primary key of the
-- jobs. A letter may outlive its job.
select l.org_id, l.job_id, l.job_type, r.subject_id, l.queue, l.attempts, l.fingerprint, l.error_code, l.error_class,
       l.error_message, l.dead_at, r.job_id is not null as job_retained, l.resolution, l.resolved_at, l.resolved_by,
       l.resolve_reason, l.successor_job_id
from (
    select * from duly.dead_letters
    where org_id = %(org_id)s and (dead_at, job_id) < (%(before_at)s, %(before_job)s)
      and (resolution is not null) = %(resolved)s
      and (%(fingerprint)s::text is null or fingerprint = %(fingerprint)s)
      and (%(job_type)s::text is null or job_type = %(job_type)s)
    order by dead_at desc, job_id desc
    limit %(limit)s
) l
left join lateral (
    select r.job_id, r.subject_id from duly.job_records r where r.org_id = l.org_id and r.job_id = l.job_id limit 1
) r on true
order by l.dead_at desc, l.job_id desc

-- name: list_group
-- Purpose: list the open dead letters of one kind in the session's org, newest first. Index: dead_letters_open; the
-- primary key of the jobs. A letter may outlive its job.
select l.org_id, l.job_id, l.job_type, r.subject_id, l.queue, l.attempts, l.fingerprint, l.error_code, l.error_class,
       l.error_message, l.dead_at, r.job_id is not null as job_retained, l.resolution, l.resolved_at, l.resolved_by,
       l.resolve_reason, l.successor_job_id
from (
    select * from duly.dead_letters
    where org_id = %(org_id)s and fingerprint = %(fingerprint)s and resolution is null and dead_at <= %(before_at)s
      and (dead_at, job_id) < (%(before_at)s, %(before_job)s)
      and (%(job_type)s::text is null or job_type = %(job_type)s)
    order by dead_at desc, job_id desc
    limit %(limit)s
) l
left join lateral (
    select r.job_id, r.subject_id from duly.job_records r where r.org_id = l.org_id and r.job_id = l.job_id limit 1
) r on true
order by l.dead_at desc, l.job_id desc

-- name: lock
-- Purpose: lock the dead letters of these jobs, open or resolved; others who resolve them wait.
-- Locks: their rows, in the order of their ids. Index: the primary key.
-- Materialized, so that records are looked up after the locks are held.
with locked as materialized (
    select * from duly.dead_letters l
    where l.org_id = %(org_id)s and l.job_id = any (%(job_ids)s)
    order by l.job_id
    for update
)
select l.job_id, l.job_type, l.dead_at, l.fingerprint, l.resolution, l.resolved_by, l.successor_job_id,
       r.correlation_id
from locked l
left join duly.job_records r on r.org_id = l.org_id and r.job_id = l.job_id
order by l.job_id

-- name: lock_open
-- Purpose: lock the next open dead letters, oldest first. Index: dead_letters_by_time.
-- Locks: their rows, skipping those that other transactions hold.
-- Materialized, so that records are looked up only for the locked letters.
with locked as materialized (
    select * from duly.dead_letters l
    where l.org_id = %(org_id)s and (l.dead_at, l.job_id) > (%(after_at)s, %(after_job)s) and l.resolution is null
      and (%(fingerprint)s::text is null or l.fingerprint = %(fingerprint)s)
      and (%(job_type)s::text is null or l.job_type = %(job_type)s)
    order by l.dead_at, l.job_id
    limit %(limit)s
    for update skip locked
)
select l.job_id, l.job_type, l.dead_at, l.fingerprint, l.resolution, l.resolved_by, l.successor_job_id,
       r.correlation_id
from locked l
left join duly.job_records r on r.org_id = l.org_id and r.job_id = l.job_id
order by l.dead_at, l.job_id

-- name: read
-- Purpose: read a dead letter with its error and the input of its job. Index: primary keys. A letter may outlive its job.
select l.org_id, l.job_id, l.job_type, l.queue, l.attempts, l.fingerprint, l.error_code, l.error_class, l.error_message,
       l.dead_at, r.job_id is not null as job_retained, l.resolution, l.resolved_at, l.resolved_by, l.resolve_reason,
       l.successor_job_id, l.error_context, r.project_id, r.subject_id, r.correlation_id, r.payload, r.payload_ref,
       r.replay_of, r.created_at
from duly.dead_letters l
left join duly.job_records r using (org_id, job_id)
where l.org_id = %(org_id)s and l.job_id = %(job_id)s

-- name: replay
-- Purpose: enqueue new jobs for ended ones, with the checks of every enqueue. The ended jobs do not change.
-- Events of the new jobs: job.queued, job.replayed. Locks: those of enqueueing.
-- A new job has the type and the queue of the ended one. Index: the primary key of the records.
select p.replay_of, p.disposition, p.job_id, p.run_at, r.job_type, r.queue
from duly.replay(
    %(org_id)s, %(jobs)s, %(actor_type)s, %(actor_id)s, %(request_id)s, %(traceparent)s, %(reason)s) p
left join duly.job_records r on r.org_id = %(org_id)s and r.job_id = p.replay_of

-- name: resolve
-- Purpose: record the resolution of open dead letters, once, and resolve their alerts.
-- Locks: their rows, which the caller holds; the rows of their alerts. Index: alerts_of_dead_letters.
with resolved as (
    update duly.dead_letters l set
        resolution = %(resolution)s, resolved_at = duly.now(), resolved_by = %(resolved_by)s,
        resolve_reason = %(reason)s, successor_job_id = d.successor_job_id
    from unnest(%(job_ids)s::uuid[], %(successors)s::uuid[]) d(job_id, successor_job_id)
    where l.org_id = %(org_id)s and l.job_id = d.job_id and l.resolution is null
    returning l.org_id, l.job_id
), alerts as (
    update duly.alerts a set resolved_at = duly.now(), seen_at = duly.now()
    from resolved r
    where a.org_id = r.org_id and a.kind = 'dead_letter' and a.target = r.job_id::text and a.resolved_at is null
)
select r.job_id from resolved r
