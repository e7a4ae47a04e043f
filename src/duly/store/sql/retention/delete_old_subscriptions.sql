-- Purpose: forget subscriptions of single jobs that ended, or went, so long ago.
-- Locks: the rows, skipping what others hold. Index: subscriptions_of_job, then the primary keys.
with old as materialized (
    select s.org_id, s.subscription_id from duly.subscriptions s
    left join duly.job_states t on t.org_id = s.org_id and t.job_id = s.job_id
    where s.job_id is not null and s.created_at < duly.now() - %(keep)s::interval
      and case when t.job_id is null
               then not exists (select from duly.job_records r where r.org_id = s.org_id and r.job_id = s.job_id)
               else t.finished_at < duly.now() - %(keep)s::interval end
    limit %(limit)s for update of s skip locked
)
delete from duly.subscriptions s using old o where s.org_id = o.org_id and s.subscription_id = o.subscription_id
