-- Purpose: count the jobs of all orgs that the reconciler failed since a time, up to `limit` + 1. Index: event_log_rare.
select count(*) as n
from (
    select from duly.event_log e
    where e.event_type = 'job.reconciled' and e.occurred_at >= duly.now() - %(since)s::interval and e.status = 'failed'
    limit %(limit)s + 1
) e
