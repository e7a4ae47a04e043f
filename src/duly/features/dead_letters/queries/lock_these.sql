-- Purpose: the dead letters of these jobs, resolved or not yet, to be resolved together; whoever else wants to waits.
-- Locks: their rows, in the order of their ids. Index: the primary key.
-- Materialized, so that records are looked up after the locks are held.
with taken as materialized (
    select * from duly.dead_letters l
    where l.org_id = %(org_id)s and l.job_id = any (%(job_ids)s)
    order by l.job_id
    for update
)
select t.job_id, t.job_type, t.dead_at, t.fingerprint, t.resolution, t.resolved_by, t.successor_job_id,
       r.correlation_id
from taken t
left join duly.job_records r on r.org_id = t.org_id and r.job_id = t.job_id
order by t.job_id
