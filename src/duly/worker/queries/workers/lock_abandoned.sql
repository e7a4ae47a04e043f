-- Purpose: lock the jobs of workers that are lost, or stopped without settling them; or, of one living worker, the jobs of
-- claims that it does not know, because the answer to its claim was lost.
-- Locks: the claims, skipping those that another process handles. Index: claims are few, one per running batch.
with abandoned as materialized (
    select c.claim_id, c.worker_id, c.org_ids, c.job_ids, w.name, w.heartbeat_at, w.lease, w.silence, w.absent_since
    from duly.claims c left join duly.workers w using (worker_id)
    where case when %(worker_id)s::uuid is null
        then w.worker_id is null or w.lost_at is not null or w.stopped_at is not null
        else c.worker_id = %(worker_id)s and c.claim_id <> all (%(known)s::uuid[]) end
    order by c.claim_id limit %(limit)s for update of c skip locked
)
select l.claim_id, l.worker_id, duly.now(), s.org_id, s.job_id, s.attempt, s.returned, s.status, s.cancel_requested_at is not null,
       s.canceled_by, s.cancel_reason, r.job_type, r.queue, r.priority, r.run_identity_hash, r.policy::text,
       l.name, l.heartbeat_at, l.lease, l.silence, l.absent_since
from abandoned l
left join lateral unnest(l.org_ids, l.job_ids) j(org_id, job_id) on true
left join lateral (
    select s.* from duly.job_states s
    where s.org_id = j.org_id and s.job_id = j.job_id and s.worker_id = l.worker_id and s.status in ('running', 'partial')
    limit 1
) s on true
left join lateral (
    select r.* from duly.job_records r where r.org_id = s.org_id and r.job_id = s.job_id limit 1
) r on true
order by l.claim_id
