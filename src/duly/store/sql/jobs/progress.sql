-- Purpose: move the progress of a held job forward.
-- Transition: none. Event: job.progressed, one for each stored change.
-- Fence: (org_id, job_id, attempt) and the status; a lower value changes nothing.
with moved as (
    update duly.job_states s set
        progress_percent = least(%(progress_percent)s::real, 100), event_seq = s.event_seq + 1, updated_at = duly.now()
    where s.org_id = %(org_id)s and s.job_id = %(job_id)s and s.attempt = %(attempt)s
      and s.status in ('running', 'partial') and s.progress_percent < least(%(progress_percent)s::real, 100)
    returning s.*
)
insert into duly.event_log (
    org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
select m.org_id, m.job_id, m.event_seq, 'job.progressed', m.status, m.attempt, duly.now(), 'worker', m.worker_id::text,
       jsonb_build_object('progress_percent', m.progress_percent, 'note', %(note)s::text)
from moved m
