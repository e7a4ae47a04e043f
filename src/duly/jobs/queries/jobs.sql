-- name: enqueue
-- Purpose: write many jobs of one org, or return the jobs that already have their idempotency keys.
-- Transition: enqueue, none -> queued. Event: job.queued.
-- Locks: ledger rows in the order of their keys; rows of active_runs for jobs with a run identity.
-- Foreign connections and plain SQL call the same function, with its notification.
-- Returns the jobs that are not as specified: duplicates, and jobs that got another id.
select ord, job_id, created from duly.enqueue_batch(
    %(org_id)s, %(policies)s::json, %(heads)s::json, %(job_ids)s::uuid[], %(result_ids)s::uuid[], %(payloads)s::jsonb,
    %(head_of)s::integer[], %(keys)s::text[], %(options)s::json, %(wake)s)

-- name: enqueue_one
-- Purpose: `enqueue` for one job, whose values need no arrays and documents.
-- Returns null, or the job that is stored instead.
select duly.enqueue_one(
    %(org_id)s, %(policy)s, %(job_type)s, %(actor_type)s, %(actor_id)s, %(request_id)s, %(correlation_id)s, %(project_id)s,
    %(traceparent)s, %(parent_id)s, %(job_id)s, %(result_id)s, %(payload)s::jsonb, %(key)s, %(options)s, %(wake)s)

-- name: cancel
-- Purpose: cancel a queued job at once, or request it from the worker that holds the job.
-- Transition: cancel, queued -> canceled; running and partial jobs only get the request.
-- Events: job.canceled or job.cancel_requested. Locks: the queue row, then the state row.
select duly.cancel(%(org_id)s, %(job_id)s, %(canceled_by)s, %(reason)s, %(actor_type)s, %(actor_id)s)

-- name: read
-- Purpose: one job of the session's org. Index: primary keys of record and state.
-- The columns are listed so that payload and result are not read.
select org_id, job_id, result_id, job_type, category, queue, priority, project_id, subject_id, actor_type, actor_id,
       request_id, correlation_id, traceparent, idempotency_key, run_identity_hash, request_payload_hash, request_payload_ref,
       status, outcome, attempt, max_attempts, progress_percent, partial_count, error_count, summary_counts,
       failure_summary, created_at, run_at, started_at, finished_at, updated_at, cancel_requested_at, canceled_at,
       canceled_by, cancel_reason, failed_at, retryable, error_code, error_class, error_message, replay_of,
       attempt_started_at, reconciliations
from duly.jobs where org_id = %(org_id)s and job_id = %(job_id)s

-- name: read_many
-- Purpose: jobs of the session's org by their ids, with the columns of `read`. Index: primary keys of record and state.
select org_id, job_id, result_id, job_type, category, queue, priority, project_id, subject_id, actor_type, actor_id,
       request_id, correlation_id, traceparent, idempotency_key, run_identity_hash, request_payload_hash, request_payload_ref,
       status, outcome, attempt, max_attempts, progress_percent, partial_count, error_count, summary_counts,
       failure_summary, created_at, run_at, started_at, finished_at, updated_at, cancel_requested_at, canceled_at,
       canceled_by, cancel_reason, failed_at, retryable, error_code, error_class, error_message, replay_of,
       attempt_started_at, reconciliations
from duly.jobs where org_id = %(org_id)s and job_id = any (%(job_ids)s)

-- name: read_status
-- Purpose: one job of the session's org for status polling: the columns of `read` and the number of its last event.
-- Index: primary keys of record and state.
select org_id, job_id, result_id, job_type, category, queue, priority, project_id, subject_id, actor_type, actor_id,
       request_id, correlation_id, traceparent, idempotency_key, run_identity_hash, request_payload_hash, request_payload_ref,
       status, outcome, attempt, max_attempts, progress_percent, partial_count, error_count, summary_counts,
       failure_summary, created_at, run_at, started_at, finished_at, updated_at, cancel_requested_at, canceled_at,
       canceled_by, cancel_reason, failed_at, retryable, error_code, error_class, error_message, replay_of,
       attempt_started_at, reconciliations, event_seq
from duly.jobs where org_id = %(org_id)s and job_id = %(job_id)s

-- name: read_statuses
-- Purpose: several jobs of the session's org for status polling, with the columns of `read_status`.
-- Index: primary keys of record and state.
-- Lateral, with a limit: each job is looked up by its key, whatever the planner estimates. For a single job this takes
-- twice as long as `read_status`.
select j.*
from unnest(%(job_ids)s::uuid[]) k(job_id)
cross join lateral (
    select org_id, job_id, result_id, job_type, category, queue, priority, project_id, subject_id, actor_type, actor_id,
           request_id, correlation_id, traceparent, idempotency_key, run_identity_hash, request_payload_hash, request_payload_ref,
           status, outcome, attempt, max_attempts, progress_percent, partial_count, error_count, summary_counts,
           failure_summary, created_at, run_at, started_at, finished_at, updated_at, cancel_requested_at, canceled_at,
           canceled_by, cancel_reason, failed_at, retryable, error_code, error_class, error_message, replay_of,
           attempt_started_at, reconciliations, event_seq
    from duly.jobs where org_id = %(org_id)s and job_id = k.job_id limit 1
) j

-- name: read_payload
-- Purpose: the payload of a job, if it is stored in its row. Index: the primary key.
select r.payload from duly.job_records r where r.org_id = %(org_id)s and r.job_id = %(job_id)s
