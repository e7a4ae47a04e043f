-- Purpose: how many jobs of all orgs failed because the reconciler said so, since a time, counted no further than
-- `most` + 1. Index: event_log_rare.
select count(*) as n
from (
    select from duly.event_log e
    where e.event_type = 'job.reconciled' and e.occurred_at >= duly.now() - %(since)s::interval and e.status = 'failed'
    limit %(most)s + 1
) e
