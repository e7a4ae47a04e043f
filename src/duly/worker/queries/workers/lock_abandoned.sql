-- Purpose: lock the claims of workers that are lost, or stopped without settling them; or, of one living worker, the
-- claims that it does not know, because the answer to its claim was lost. Their jobs leave the plain path.
-- Locks: the claims, skipping those that another process handles. Index: claims are few, one per running batch.
with abandoned as materialized (
    select c.claim_id, c.plain, c.org_ids, c.job_ids
    from duly.claims c left join duly.workers w using (worker_id)
    where case when %(worker_id)s::uuid is null
        then w.worker_id is null or w.lost_at is not null or w.stopped_at is not null
        else c.worker_id = %(worker_id)s and c.claim_id <> all (%(known)s::uuid[]) end
    order by c.claim_id limit %(limit)s for update of c skip locked
)
select a.claim_id,
       case when a.plain then duly.leave_plain_path(
           array_fill(a.claim_id, array[cardinality(a.job_ids)]), a.org_ids, a.job_ids) end
from abandoned a
order by a.claim_id
