-- name: list_by_commit
-- Purpose: list the next events of all orgs, last committed first, and whether each is of the type that starts or
-- completes a job. Events of other types count towards the limit.
-- Index: event_log_by_commit and event_batches_by_commit, backwards, without a further order but that of the index: a
-- transaction may have written any number of events, and sorting those would read them all. The log is never changed, so
-- the number of events read of a transaction is a cursor.
select e.org_id, e.job_id, e.commit_xid::text, e.event_type = %(event_type)s
from (
    (select 1 as source, row_number() over (order by l.commit_xid desc) as n, l.org_id, l.job_id, l.commit_xid, l.event_type
     from duly.event_log l
     where l.commit_xid <= %(xid)s::xid8 and not l.batched
     order by l.commit_xid desc limit %(skip)s + %(limit)s)
    union all
    (select 2, row_number() over (order by b.commit_xid desc), b.org_id, b.job_id, b.commit_xid, b.event_type
     from duly.batched_events b
     where b.commit_xid <= %(xid)s::xid8
     order by b.commit_xid desc limit %(skip)s + %(limit)s)
) e
order by e.commit_xid desc, e.source, e.n
offset %(skip)s
limit %(limit)s

-- name: list_ended
-- Purpose: list the next jobs of all orgs that failed, or that were canceled, last ended first. Index: event_log_rare,
-- which contains the event that ended each; the constants prove to the planner that this partial index suffices.
-- Reads up to `limit` events, and those of the same time.
select e.org_id, e.job_id, e.occurred_at
from duly.event_log e
where e.event_type = %(event_type)s and e.event_type in ('job.failed', 'job.canceled')
  and e.occurred_at <= %(before_at)s and (e.occurred_at, e.job_id) < (%(before_at)s, %(before_job)s)
order by e.occurred_at desc, e.job_id desc
limit %(limit)s

-- name: list_by_fingerprint
-- Purpose: list the next jobs of all orgs with dead letters of one fingerprint, last dead first.
-- Index: dead_letters_everywhere. Reads up to `limit` dead letters, and those of the same time.
select l.org_id, l.job_id, l.dead_at
from duly.dead_letters l
where l.fingerprint = %(fingerprint)s
  and l.dead_at <= %(before_at)s and (l.dead_at, l.job_id) < (%(before_at)s, %(before_job)s)
order by l.dead_at desc, l.job_id desc
limit %(limit)s

-- name: list_claimed
-- Purpose: list the next jobs of all orgs that workers hold, newest first. Claims are few, one per running batch.
-- Index: the primary key of the states.
select distinct h.org_id, h.job_id
from duly.held_jobs h
where h.job_id < %(before_job)s and h.status = any (%(statuses)s)
order by h.job_id desc, h.org_id
limit %(limit)s

-- name: list_ready
-- Purpose: list the next ready jobs of all orgs, in the order of the queues.
-- Index: a loose scan over ready's primary key, one step per lane; then that key itself. Reads up to `limit` rows of a lane.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
)
select w.queue, w.org_id, w.rank, w.job_id
from lanes l
cross join lateral (
    select r.* from duly.ready r
    where r.queue = l.lane
      and (r.org_id, r.rank, r.job_id) > (
          case when l.lane = %(lane)s then %(after_org)s::uuid else '00000000-0000-0000-0000-000000000000' end,
          %(rank)s::smallint, %(after_job)s::uuid)
    order by r.org_id, r.rank, r.job_id
    limit %(limit)s
) w
where l.lane >= %(lane)s and (%(queue)s::text is null or split_part(l.lane, '#', 1) = %(queue)s)
order by w.queue, w.org_id, w.rank, w.job_id
limit %(limit)s

-- name: list_scheduled
-- Purpose: list the next scheduled jobs of all orgs, first due first. Index: the primary key.
select s.run_at, s.org_id, s.job_id
from duly.scheduled s
where s.run_at >= %(after_at)s and (s.run_at, s.org_id, s.job_id) > (%(after_at)s, %(after_org)s, %(after_job)s)
order by s.run_at, s.org_id, s.job_id
limit %(limit)s

-- name: read
-- Purpose: read jobs of any org from the view. Index: primary keys of record and state.
-- The columns are those of `jobs/read`.
select j.org_id, j.job_id, j.result_id, j.job_type, j.category, j.queue, j.priority, j.project_id, j.subject_id,
       j.actor_type, j.actor_id, j.request_id, j.correlation_id, j.traceparent, j.idempotency_key, j.run_identity_hash,
       j.request_payload_hash, j.request_payload_ref, j.status, j.outcome, j.attempt, j.max_attempts, j.progress_percent,
       j.partial_count, j.error_count, j.summary_counts, j.failure_summary, j.created_at, j.run_at, j.started_at,
       j.finished_at, j.updated_at, j.cancel_requested_at, j.canceled_at, j.canceled_by, j.cancel_reason, j.failed_at,
       j.retryable, j.error_code, j.error_class, j.error_message, j.replay_of, j.attempt_started_at, j.reconciliations
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[]) k(org_id, job_id)
cross join lateral (select * from duly.jobs j where j.org_id = k.org_id and j.job_id = k.job_id limit 1) j

-- name: find_org
-- Purpose: find the org of a job. Index: the orgs', then the primary key of the records, once for each org.
select r.org_id
from duly.organizations o
cross join lateral (
    select r.org_id from duly.job_records r where r.org_id = o.org_id and r.job_id = %(job_id)s limit 1) r
limit 1

-- name: count_by_status
-- Purpose: count the jobs of all orgs in each status, each up to `limit` + 1; failed and canceled ones as far as events
-- are retained. Completed jobs are not counted: no index finds them.
-- Index: the primary keys of ready and scheduled; event_log_rare. Claims are few; then the primary key of the states.
with held as materialized (
    select distinct h.job_id, h.status from (select h.job_id, h.status from duly.held_jobs h limit %(limit)s + 1) h
)
select 'queued' as status, (select count(*) from (
    (select from duly.ready limit %(limit)s + 1) union all (select from duly.scheduled limit %(limit)s + 1)) w) as n
union all
select h.status, count(*) from held h group by h.status
union all
select 'failed', (select count(*) from (
    select from duly.event_log e where e.event_type = 'job.failed' limit %(limit)s + 1) c)
union all
select 'canceled', (select count(*) from (
    select from duly.event_log e where e.event_type = 'job.canceled' limit %(limit)s + 1) c)
