-- Purpose: store a chunk's result with its snapshot, its event and the progress, all or nothing.
-- Transition: chunk, running or partial -> partial. Event: job.partial.
-- Fence: (org_id, job_id, attempt) and the status. Progress never falls.
with held as (
    update duly.job_states s set
        status = 'partial', partial_count = s.partial_count + 1, result_seq = s.result_seq + 1,
        event_seq = s.event_seq + 1, updated_at = duly.now(),
        progress_percent = greatest(s.progress_percent, least(%(progress_percent)s::real, 100))
    where s.org_id = %(org_id)s and s.job_id = %(job_id)s and s.attempt = %(attempt)s
      and s.status in ('running', 'partial')
    returning s.*
), snapshot as (
    insert into duly.result_snapshots (
        org_id, job_id, result_kind, result_seq, chunk_key, payload, payload_ref, summary, created_at)
    select h.org_id, h.job_id, 'partial', h.result_seq, %(chunk_key)s, %(payload)s, %(payload_ref)s, %(summary)s, duly.now()
    from held h
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
    select h.org_id, h.job_id, h.event_seq, 'job.partial', 'partial', h.attempt, duly.now(), 'worker', h.worker_id::text,
           jsonb_build_object('result_seq', h.result_seq, 'progress_percent', h.progress_percent)
    from held h
)
select h.result_seq, h.progress_percent, h.cancel_requested_at is not null as cancel_requested from held h
