-- Purpose: one job of the session's org for whoever polls it: the columns of `jobs/read`, and the number of its last
-- event. Index: primary keys of record and state.
select org_id, job_id, result_id, job_type, category, queue, priority, project_id, subject_id, actor_type, actor_id,
       request_id, correlation_id, traceparent, idempotency_key, run_identity_hash, request_payload_hash, request_payload_ref,
       status, outcome, attempt, max_attempts, progress_percent, partial_count, error_count, summary_counts,
       failure_summary, created_at, run_at, started_at, finished_at, updated_at, cancel_requested_at, canceled_at,
       canceled_by, cancel_reason, failed_at, retryable, error_code, error_class, error_message, replay_of,
       attempt_started_at, reconciliations, event_seq
from duly.jobs where org_id = %(org_id)s and job_id = %(job_id)s
