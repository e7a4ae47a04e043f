-- Purpose: some jobs of whatever orgs, as the view shows them. Index: primary keys of record and state.
-- The columns are those of `jobs/read`.
select j.org_id, j.job_id, j.result_id, j.job_type, j.category, j.queue, j.priority, j.project_id, j.subject_id,
       j.actor_type, j.actor_id, j.request_id, j.correlation_id, j.traceparent, j.idempotency_key, j.run_identity_hash,
       j.request_payload_hash, j.request_payload_ref, j.status, j.outcome, j.attempt, j.max_attempts, j.progress_percent,
       j.partial_count, j.error_count, j.summary_counts, j.failure_summary, j.created_at, j.run_at, j.started_at,
       j.finished_at, j.updated_at, j.cancel_requested_at, j.canceled_at, j.canceled_by, j.cancel_reason, j.failed_at,
       j.retryable, j.error_code, j.error_class, j.error_message, j.replay_of, j.attempt_started_at, j.reconciliations
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[]) k(org_id, job_id)
cross join lateral (select * from duly.jobs j where j.org_id = k.org_id and j.job_id = k.job_id limit 1) j
