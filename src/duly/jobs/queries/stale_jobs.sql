-- name: list_existing
-- Purpose: which of these few jobs exist in any org. Index: that of the organizations, then the primary key of the records.
select distinct r.job_id
from unnest(%(job_ids)s::uuid[]) k(job_id)
cross join duly.organizations o
join duly.job_records r on r.org_id = o.org_id and r.job_id = k.job_id

-- name: find_running
-- Purpose: jobs whose attempt has run for longer than its policy allows, found by the claims of their workers, which are few.
select h.org_id, h.job_id
from duly.held_jobs h
join duly.job_records r on r.org_id = h.org_id and r.job_id = h.job_id
cross join lateral (select duly.policy_of(r.policy, r.policy_hash) as policy offset 0) p
where h.claimed_at < duly.now() - %(at_least)s
  and h.attempt_started_at < duly.now() - duly.stale_after(p.policy, 'running_stale_after', %(usual)s)
  and duly.is_judged(p.policy)
limit %(limit)s

-- name: find_scheduled
-- Purpose: scheduled jobs that are long due, but were never promoted to their queue.
-- Index: the primary key, which begins with the time.
select q.org_id, q.job_id
from duly.scheduled q
join duly.job_records r using (org_id, job_id)
cross join lateral (select duly.policy_of(r.policy, r.policy_hash) as policy offset 0) p
where q.run_at < duly.now() - %(at_least)s
  and q.run_at < duly.now() - duly.stale_after(p.policy, 'queued_stale_after', %(usual)s)
  and duly.is_judged(p.policy) and not duly.is_paused(r.org_id, r.queue, r.job_type)
order by q.run_at limit %(limit)s
