-- Purpose: end a job that waited in vain; for the reconciler only.
-- Transition: reconcile, queued -> failed. Events: job.reconciled, then job.failed.
-- Fence: the queue row; a job that was claimed meanwhile has none. Locks: queue row, then state row.
with job as materialized (
    select * from duly.take_out(%(org_id)s, %(job_id)s)
), ended as (
    insert into duly.job_states as s (
        org_id, job_id, status, outcome, event_seq, run_at, updated_at, finished_at, retryable, error_count,
        error_code, error_message, context, failure_summary)
    select j.org_id, j.job_id, 'failed', 'failed', 3, j.due_at, duly.now(), duly.now(), true, 1,
           %(error_code)s, %(error_message)s, jsonb_build_object('reconciliation', %(record)s::jsonb),
           jsonb_build_array(%(record)s::jsonb)
    from job j
    on conflict (org_id, job_id) do update set
        status = 'failed', outcome = 'failed', event_seq = s.event_seq + 2, updated_at = duly.now(),
        finished_at = duly.now(), retryable = true, error_count = s.error_count + 1,
        error_code = excluded.error_code, error_message = excluded.error_message,
        context = coalesce(s.context, '{}') || excluded.context,
        failure_summary = coalesce(s.failure_summary, '[]') || excluded.failure_summary
    where s.status = 'queued'
    returning s.org_id, s.job_id, s.event_seq, s.attempt
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
    select e.org_id, e.job_id, e.event_seq - 2 + v.n, v.event_type, 'failed', e.attempt, duly.now(), 'system',
           'reconciler', %(record)s::jsonb
    from ended e cross join (values (1, 'job.reconciled'), (2, 'job.failed')) v(n, event_type)
), run as (
    delete from duly.active_runs a using job j join ended e using (org_id, job_id)
    where a.org_id = j.org_id and a.job_type = j.job_type and a.run_identity_hash = j.run_identity_hash
      and a.job_id = j.job_id
)
select job_id from ended
