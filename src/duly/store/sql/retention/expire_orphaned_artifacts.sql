-- Purpose: an artifact lives no longer than its job: those of jobs that are gone expire now.
-- Locks: the rows, skipping what others hold. Index: the unique key, then the primary key of the records.
with old as materialized (
    select a.org_id, a.artifact_id from duly.artifacts a
    where a.job_id < duly.uuid7_floor(duly.now() - %(keep)s::interval)
      and (a.expires_at is null or a.expires_at > duly.now())
      and not exists (select from duly.job_records r where r.org_id = a.org_id and r.job_id = a.job_id)
    limit %(limit)s for update skip locked
)
update duly.artifacts a set expires_at = duly.now()
from old o where a.org_id = o.org_id and a.artifact_id = o.artifact_id
