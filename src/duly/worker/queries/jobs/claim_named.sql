-- Purpose: claim the one job that a notification named, without a search.
-- Claims nothing if the job is no longer ready, if its queue is paused, if the worker was declared lost, or if a gate
-- counts or holds back jobs of its org or type: `claim` does what is right then.
-- Transition: claim, queued -> running. The attempt is counted here. Event: job.started.
-- Locks: the row of ready, unless another one locks it; then its state row. Index: primary keys.
with picked as materialized (
    select r.ctid as row_id, r.org_id, r.job_id from duly.ready r
    where r.queue = %(lane)s and r.org_id = %(org_id)s and r.rank = %(rank)s and r.job_id = %(job_id)s
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
), held as (
    insert into duly.job_states as s (
        org_id, job_id, status, outcome, attempt, event_seq, run_at, worker_id, attempt_started_at, started_at, updated_at)
    select p.org_id, p.job_id, 'running', 'pending', 1, 2, n.now, %(worker_id)s, n.now, n.now, n.now
    from picked p cross join (select duly.now() as now) n
    on conflict (org_id, job_id) do update set
        status = 'running', attempt = s.attempt + 1, event_seq = s.event_seq + 1, worker_id = excluded.worker_id,
        attempt_started_at = excluded.updated_at, started_at = coalesce(s.started_at, excluded.updated_at),
        updated_at = excluded.updated_at, counted = 0
    where s.status = 'queued'
    returning s.org_id, s.job_id, s.attempt, s.event_seq, s.returned, s.progress_percent, s.partial_count, s.context, s.run_at
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
    select h.org_id, h.job_id, h.event_seq, 'job.started', 'running', h.attempt, duly.now(), 'worker', %(worker_id)s::text
    from held h
), claim as (
    insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids)
    select %(claim_id)s, %(worker_id)s, duly.now(), array[h.org_id], array[h.job_id] from held h
)
select h.org_id, h.job_id, h.attempt, h.returned, h.progress_percent, h.partial_count, h.context -> 'checkpoint',
       r.job_type, r.queue, r.priority, r.project_id, r.subject_id, r.actor_type, r.actor_id, r.request_id,
       r.correlation_id, r.traceparent, r.run_identity_hash, r.payload::text, r.payload_ref, r.metadata, false,
       extract(epoch from duly.now() - case h.attempt when 1 then r.run_at else h.run_at end)::float8, duly.policy_of(r.policy, r.policy_hash)::text,
       h.org_id, false
from held h
-- By the given key, so that other partitions are pruned before they are opened.
join duly.job_records r on r.org_id = %(org_id)s and r.job_id = %(job_id)s
