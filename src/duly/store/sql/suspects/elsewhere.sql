-- Purpose: which of these few jobs exist in any org. Index: the organizations', then the primary key of the records.
select distinct r.job_id
from unnest(%(job_ids)s::uuid[]) k(job_id)
cross join duly.organizations o
join duly.job_records r on r.org_id = o.org_id and r.job_id = k.job_id
