-- Purpose: claim the one job that a notification named, without a search.
-- Claims nothing if the job is no longer ready, if its queue is paused, if the worker was declared lost, or if a gate
-- counts or holds back jobs of its org or type: `claim` does what is right then.
-- Transition: claim, queued -> running. The attempt is counted here. Event: job.started.
-- Only new jobs, which take the plain path: notifications name no others, and none before that path is used (layout 4).
-- Locks: the row of ready, unless another one locks it. Index: primary keys.
with picked as materialized (
    select r.ctid as row_id, r.org_id, r.job_id from duly.ready r
    where r.queue = %(lane)s and r.org_id = %(org_id)s and r.rank = %(rank)s and r.job_id = %(job_id)s and r.fresh
      and not exists (
          select from duly.workers w where w.worker_id = %(worker_id)s and coalesce(w.lost_at, w.stopped_at) is not null)
      and not exists (select from duly.queues q where q.queue = %(lane)s and q.paused_at is not null)
      and not exists (select from duly.gates g where g.job_type <> '')
      and not exists (
          select from duly.gates g where g.org_id = %(org_id)s and g.job_type = ''
            and (g.max_running is not null or g.starts_per_second is not null or g.paused_at is not null))
    for update skip locked
), taken as (
    delete from duly.ready r where r.ctid = any (array(select p.row_id from picked p))
), claim as (
    insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids, plain, low, high, commit_xid)
    select %(claim_id)s, %(worker_id)s, duly.now(), array[p.org_id], array[p.job_id], true, p.job_id, p.job_id,
           pg_current_xact_id()
    from picked p
), event as (
    insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
    select p.org_id, duly.now(), 'job.started', 2, p.job_id, 1, array[p.job_id] from picked p
)
select p.org_id, p.job_id, 1, 0, 0::real, 0, null::jsonb,
       r.job_type, r.queue, r.priority, r.project_id, r.subject_id, r.actor_type, r.actor_id, r.request_id,
       r.correlation_id, r.traceparent, r.run_identity_hash, r.payload::text, r.payload_ref, r.metadata, true,
       extract(epoch from duly.now() - r.run_at)::float8, duly.policy_of(r.policy, r.policy_hash)::text, p.org_id, false
from picked p
-- By the given key, so that other partitions are pruned before they are opened.
join duly.job_records r on r.org_id = %(org_id)s and r.job_id = %(job_id)s
