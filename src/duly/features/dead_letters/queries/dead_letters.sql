-- name: lock
-- Purpose: one dead letter, to be resolved; whoever else wants to waits. Locks: its row.
select l.job_id, l.job_type, l.dead_at, l.fingerprint, l.resolution, l.resolved_by, l.successor_job_id,
       r.correlation_id
from duly.dead_letters l
left join duly.job_records r using (org_id, job_id)
where l.org_id = %(org_id)s and l.job_id = %(job_id)s
for update of l

-- name: replay
-- Purpose: new jobs that do the work of ended ones again, through the one door of enqueueing.
-- The ended ones stay as they are. Events of the new ones: job.queued, job.replayed. Locks: those of enqueueing.
-- A new job has the type and the queue of the ended one. Index: the primary key of the records.
select p.replay_of, p.disposition, p.job_id, p.run_at, r.job_type, r.queue
from duly.replay(
    %(org_id)s, %(jobs)s, %(actor_type)s, %(actor_id)s, %(request_id)s, %(traceparent)s, %(reason)s) p
left join duly.job_records r on r.org_id = %(org_id)s and r.job_id = p.replay_of
