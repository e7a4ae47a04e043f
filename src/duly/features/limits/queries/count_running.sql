-- Purpose: count the jobs that run already, for a gate that starts to count; they are counted off when they end.
-- Locks: the gate, which the caller holds; then state rows of running jobs, in the order of their key.
-- Index: claims are few, one per running batch; then primary keys.
with held as materialized (
    select s.org_id, s.job_id
    from duly.claims c
    cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
    join duly.job_states s on s.org_id = j.org_id and s.job_id = j.job_id
    where s.status in ('running', 'partial') and s.counted & %(bit)s = 0
      and (%(org_id)s = '00000000-0000-0000-0000-000000000000' or j.org_id = %(org_id)s)
      and (%(job_type)s = '' or exists (
          select from duly.job_records r
          where r.org_id = j.org_id and r.job_id = j.job_id and r.job_type = %(job_type)s))
    order by s.org_id, s.job_id
    for update of s
), marked as (
    update duly.job_states s set counted = s.counted | %(bit)s
    from held h where s.org_id = h.org_id and s.job_id = h.job_id
    returning s.job_id
)
update duly.gates g set running = g.running + m.n
from (select count(*) as n from marked) m
where g.org_id = %(org_id)s and g.job_type = %(job_type)s
