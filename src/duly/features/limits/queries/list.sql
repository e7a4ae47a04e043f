-- Purpose: gates in the order of their key, of one org or one job type if so wished.
-- Index: the primary key; gates_by_type for a job type.
select nullif(g.org_id, '00000000-0000-0000-0000-000000000000') as org_id, nullif(g.job_type, '') as job_type,
       g.max_running, g.starts_per_second, g.burst, g.max_waiting, g.paused_at, g.paused_by, g.pause_reason,
       g.running, duly.gate_tokens(g) as available, g.updated_at
from duly.gates g
where (g.org_id, g.job_type) > (%(after_org)s, %(after_type)s)
  and (%(org_id)s::uuid is null or g.org_id = %(org_id)s)
  and (%(job_type)s::text is null or g.job_type = %(job_type)s)
order by g.org_id, g.job_type
limit %(limit)s
