-- Purpose: new jobs that do the work of ended ones again, through the one door of enqueueing.
-- The ended ones stay as they are. Events of the new ones: job.queued, job.replayed. Locks: those of enqueueing.
-- A new job has the type and the queue of the ended one. Index: the primary key of the records.
select p.replay_of, p.disposition, p.job_id, p.run_at, r.job_type, r.queue
from duly.replay(
    %(org_id)s, %(jobs)s, %(actor_type)s, %(actor_id)s, %(request_id)s, %(traceparent)s, %(reason)s) p
left join duly.job_records r on r.org_id = %(org_id)s and r.job_id = p.replay_of
