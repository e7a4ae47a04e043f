-- Purpose: how many subscriptions there are of a job, or of an org's jobs at large, and how many of them somebody made.
-- Index: subscriptions_of_job, or subscriptions_wide.
select count(*) as subscriptions, count(*) filter (where s.created_by = %(created_by)s) as own
from (
    select w.created_by from duly.subscriptions w
    where %(job_id)s::uuid is null and w.org_id = %(org_id)s and w.job_id is null
    union all
    select o.created_by from duly.subscriptions o where o.org_id = %(org_id)s and o.job_id = %(job_id)s
) s
