-- Purpose: new jobs that do the work of ended ones again, through the one door of enqueueing.
-- The ended ones stay as they are. Events of the new ones: job.queued, job.replayed. Locks: those of enqueueing.
select replay_of, disposition, job_id, run_at
from duly.replay(
    %(org_id)s, %(jobs)s, %(actor_type)s, %(actor_id)s, %(request_id)s, %(traceparent)s, %(reason)s)
