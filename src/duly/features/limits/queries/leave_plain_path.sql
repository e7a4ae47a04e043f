-- Purpose: give the running jobs of a gate that starts to count their state rows, in which they are marked as counted.
-- Locks: their claims, one after the other. Index: claims are few, one per running batch; then primary keys.
select duly.leave_plain_path(h.org_id, h.job_id)
from (
    select h.org_id, h.job_id from duly.held_jobs h
    where (%(org_id)s = '00000000-0000-0000-0000-000000000000' or h.org_id = %(org_id)s)
      and (%(job_type)s = '' or exists (
          select from duly.job_records r where r.org_id = h.org_id and r.job_id = h.job_id and r.job_type = %(job_type)s))
    order by h.claim_id
    offset 0
) h
