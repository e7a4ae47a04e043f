-- Purpose: messages to be sent again, as they have failed for good, the oldest first; and whether the one before each, of
-- the same job, is still to be sent. Asked under a lock, as deliveries/write does.
-- Locks: the messages, skipping those that somebody else sends again; then those before them, in the order of their
-- keys. Index: webhook_deliveries_by_time; the primary key.
with chosen as materialized (
    select d.org_id, d.endpoint_id, d.job_id, d.event_seq from duly.webhook_deliveries d
    where d.org_id = %(org_id)s and d.endpoint_id = %(endpoint_id)s and d.status = 'failed' and d.created_at >= %(since)s
    order by d.created_at, d.job_id, d.event_seq
    limit %(limit)s
    for update skip locked
)
select c.job_id, c.event_seq, b.event_seq as before_seq, coalesce(b.waits, false) as waits
from (select * from chosen order by job_id, event_seq) c
left join lateral (
    select d.event_seq, d.status = 'pending' as waits from duly.webhook_deliveries d
    where d.org_id = c.org_id and d.endpoint_id = c.endpoint_id and d.job_id = c.job_id and d.event_seq < c.event_seq
    order by d.event_seq desc limit 1
    for share
) b on true
