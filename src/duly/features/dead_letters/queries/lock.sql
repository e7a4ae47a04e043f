-- Purpose: one dead letter, to be resolved; whoever else wants to waits. Locks: its row.
select l.job_id, l.job_type, l.dead_at, l.fingerprint, l.resolution, l.resolved_by, l.successor_job_id,
       r.correlation_id
from duly.dead_letters l
left join duly.job_records r using (org_id, job_id)
where l.org_id = %(org_id)s and l.job_id = %(job_id)s
for update of l
