-- Purpose: which org a job belongs to. Index: the orgs', then the primary key of the records, once for each org.
select r.org_id
from duly.organizations o
cross join lateral (
    select r.org_id from duly.job_records r where r.org_id = o.org_id and r.job_id = %(job_id)s limit 1) r
limit 1
