-- Purpose: read the jobs of locked claims that still hold them, with what is known of their worker.
-- Index: the primary keys. Lateral, with a limit: each job is looked up by its key, whatever the planner estimates.
select c.claim_id, c.worker_id, duly.now(), s.org_id, s.job_id, s.attempt, s.returned, s.status, s.cancel_requested_at is not null,
       s.canceled_by, s.cancel_reason, r.job_type, r.queue, r.priority, r.run_identity_hash, duly.policy_of(r.policy, r.policy_hash)::text,
       w.name, w.heartbeat_at, w.lease, w.silence, w.absent_since
from duly.claims c
left join duly.workers w using (worker_id)
left join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id) on true
left join lateral (
    select s.* from duly.job_states s
    where s.org_id = j.org_id and s.job_id = j.job_id and s.worker_id = c.worker_id and s.status in ('running', 'partial')
    limit 1
) s on true
left join lateral (
    select r.* from duly.job_records r where r.org_id = s.org_id and r.job_id = s.job_id limit 1
) r on true
where c.claim_id = any (%(claim_ids)s)
order by c.claim_id
