-- Purpose: what became of the jobs a worker holds: canceled by request, or no longer its own.
-- Index: the primary key of the states, one look per held job.
select h.org_id, h.job_id, h.attempt, s.canceled_by, s.cancel_reason,
       s.attempt = h.attempt and s.status in ('running', 'partial') as held
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[], %(attempts)s::integer[]) h(org_id, job_id, attempt)
join duly.job_states s using (org_id, job_id)
where s.cancel_requested_at is not null or s.attempt <> h.attempt or s.status not in ('running', 'partial')
