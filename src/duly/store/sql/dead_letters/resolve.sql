-- Purpose: say of open dead letters what was done about them; once. Locks: their rows, which the caller holds.
update duly.dead_letters l set
    resolution = %(resolution)s, resolved_at = duly.now(), resolved_by = %(resolved_by)s, resolve_reason = %(reason)s,
    successor_job_id = d.successor_job_id
from unnest(%(job_ids)s::uuid[], %(successors)s::uuid[]) d(job_id, successor_job_id)
where l.org_id = %(org_id)s and l.job_id = d.job_id and l.resolution is null
