-- Purpose: say of open dead letters what was done about them; once. Their alerts are over with them.
-- Locks: their rows, which the caller holds; the rows of their alerts. Index: alerts_of_dead_letters.
with resolved as (
    update duly.dead_letters l set
        resolution = %(resolution)s, resolved_at = duly.now(), resolved_by = %(resolved_by)s,
        resolve_reason = %(reason)s, successor_job_id = d.successor_job_id
    from unnest(%(job_ids)s::uuid[], %(successors)s::uuid[]) d(job_id, successor_job_id)
    where l.org_id = %(org_id)s and l.job_id = d.job_id and l.resolution is null
    returning l.org_id, l.job_id
), over as (
    update duly.alerts a set resolved_at = duly.now(), seen_at = duly.now()
    from resolved r
    where a.org_id = r.org_id and a.kind = 'dead_letter' and a.target = r.job_id::text and a.resolved_at is null
)
select r.job_id from resolved r
