-- Purpose: the next open dead letters, the oldest first, to be resolved together. Index: dead_letters_by_time.
-- Locks: their rows, skipping those that others are about to resolve.
-- Materialized, so that records are looked up only for the letters that were taken.
with taken as materialized (
    select * from duly.dead_letters l
    where l.org_id = %(org_id)s and (l.dead_at, l.job_id) > (%(after_at)s, %(after_job)s) and l.resolution is null
      and (%(fingerprint)s::text is null or l.fingerprint = %(fingerprint)s)
      and (%(job_type)s::text is null or l.job_type = %(job_type)s)
    order by l.dead_at, l.job_id
    limit %(limit)s
    for update skip locked
)
select t.job_id, t.job_type, t.dead_at, t.fingerprint, t.resolution, t.resolved_by, t.successor_job_id,
       r.correlation_id
from taken t
left join duly.job_records r on r.org_id = t.org_id and r.job_id = t.job_id
order by t.dead_at, t.job_id
