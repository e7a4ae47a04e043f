-- Purpose: move the progress of held jobs forward, and store their checkpoints.
-- Transition: none. Event: job.progressed, one for each stored change.
-- Fence: (org_id, job_id, attempt) and the status; a lower value changes nothing, unless a checkpoint comes with it.
-- Locks: state rows in the order of the document, which the caller sorts by id.
-- `between` is there for the planner, as in `complete`.
with t as materialized (
    select * from json_to_recordset(%(updates)s::json) as t(
        org_id uuid, job_id uuid, attempt integer, progress_percent real, note text, checkpoint jsonb)
    where t.attempt between 0 and 2147483647
), moved as (
    update duly.job_states s set
        progress_percent = greatest(s.progress_percent, least(t.progress_percent, 100)),
        context = case when t.checkpoint is null then s.context
                  else jsonb_set(coalesce(s.context, '{}'), '{checkpoint}', t.checkpoint) end,
        event_seq = s.event_seq + 1, updated_at = duly.now()
    from t
    where s.org_id = t.org_id and s.job_id = t.job_id and s.attempt = t.attempt and s.status in ('running', 'partial')
      and (s.progress_percent < least(t.progress_percent, 100) or t.checkpoint is not null)
    returning s.*, t.note, t.checkpoint is not null as checked
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
    select m.org_id, m.job_id, m.event_seq, 'job.progressed', m.status, m.attempt, duly.now(), 'worker', m.worker_id::text,
           jsonb_strip_nulls(jsonb_build_object('progress_percent', m.progress_percent, 'note', m.note,
               'checkpoint', case when m.checked then true end))
    from moved m
)
select m.org_id, m.job_id, m.attempt from moved m
