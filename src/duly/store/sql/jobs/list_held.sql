-- Purpose: the next jobs of an org that workers hold, the newest first, and which of them are of a job type.
-- Index: claims are few, one per batch at work; then primary keys.
select h.job_id, null::timestamptz as at,
       %(job_type)s::text is null or %(job_type)s = (
           select r.job_type from duly.job_records r where r.org_id = %(org_id)s and r.job_id = h.job_id) as fits
from (
    select distinct s.job_id
    from duly.claims c
    cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
    join duly.job_states s on s.org_id = j.org_id and s.job_id = j.job_id
    where j.org_id = %(org_id)s and j.job_id < %(before_job)s and s.status = %(status)s
    order by s.job_id desc
    limit %(look)s
) h
order by h.job_id desc
