-- Purpose: write many jobs of one org, or find the ones that were first.
-- Transition: enqueue, none -> queued. Event: job.queued.
-- Locks: ledger rows in the order of their keys; rows of active_runs where an identity is given.
-- The function is the same for foreign connections and plain SQL, which ask it to notify as well.
select job_id, created from duly.enqueue_jobs(%(org_id)s, %(policies)s, %(jobs)s, %(wake)s) order by ord
