-- Purpose: one dead letter with its whole error and its job's input. Index: primary keys.
-- A letter may outlive the record of its job.
select l.org_id, l.job_id, l.job_type, l.queue, l.attempts, l.fingerprint, l.error_code, l.error_class, l.error_message,
       l.dead_at, r.job_id is not null as kept, l.resolution, l.resolved_at, l.resolved_by, l.resolve_reason,
       l.successor_job_id, l.error_context, r.project_id, r.subject_id, r.correlation_id, r.payload, r.payload_ref,
       r.replay_of, r.created_at
from duly.dead_letters l
left join duly.job_records r using (org_id, job_id)
where l.org_id = %(org_id)s and l.job_id = %(job_id)s
