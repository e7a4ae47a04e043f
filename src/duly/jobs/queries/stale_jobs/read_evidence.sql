-- Purpose: the evidence by which the freshness of these jobs is assessed, in one snapshot. Index: primary keys, and the
-- claims of one worker, which are few.
select r.org_id, r.job_id, coalesce(s.status, 'queued') as status, coalesce(s.attempt, 0) as attempt,
       coalesce(s.returned, 0) as returned, r.job_type, r.queue, r.priority, r.run_identity_hash,
       duly.policy_of(r.policy, r.policy_hash)::text as policy, coalesce(s.run_at, r.run_at) as run_at, s.attempt_started_at,
       s.cancel_requested_at is not null as cancel_requested, s.canceled_by, s.cancel_reason,
       s.worker_id, w.name as worker_name, w.heartbeat_at, w.heartbeat_at + w.lease as lease_ends_at,
       coalesce(w.lost_at, w.stopped_at) as worker_gone_at,
       s.status in ('running', 'partial') and exists (
           select from duly.claims c where c.worker_id = s.worker_id and s.job_id = any (c.job_ids)) as claimed,
       exists (select from duly.ready q where q.queue in (r.queue, r.queue || '#' || r.job_type)
                 and q.org_id = r.org_id and q.rank = -r.priority and q.job_id = r.job_id)
           or exists (select from duly.scheduled q
                      where q.run_at = coalesce(s.run_at, r.run_at) and q.org_id = r.org_id and q.job_id = r.job_id)
           as queued,
       duly.is_paused(r.org_id, r.queue, r.job_type) as paused,
       duly.resumed_at(r.org_id, r.queue, r.job_type) as resumed_at,
       exists (select from jsonb_array_elements(s.context -> 'reconciliations') x where x ->> 'status' = s.status)
           as reconciled,
       duly.now() as read_at
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[]) k(org_id, job_id)
join duly.job_records r using (org_id, job_id)
left join lateral (select x.* from duly.state_of(k.org_id, k.job_id) x limit 1) s on true
left join duly.workers w on w.worker_id = s.worker_id
