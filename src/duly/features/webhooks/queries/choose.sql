-- Purpose: one message to be sent again, unless it is being sent just now; and whether the one before it, of the same job,
-- is still to be sent. Asked under a lock, as deliveries/write does: whoever ends the one before it waits for us.
-- Locks: its row, and the one before it. Index: the primary key.
with chosen as materialized (
    select d.org_id, d.endpoint_id, d.job_id, d.event_seq from duly.webhook_deliveries d
    where d.org_id = %(org_id)s and d.endpoint_id = %(endpoint_id)s and d.job_id = %(job_id)s and d.event_seq = %(event_seq)s
      and (d.held_until is null or d.held_until <= duly.now())
    for update
)
select c.job_id, c.event_seq, b.event_seq as before_seq, coalesce(b.waits, false) as waits
from chosen c
left join lateral (
    select d.event_seq, d.status = 'pending' as waits from duly.webhook_deliveries d
    where d.org_id = c.org_id and d.endpoint_id = c.endpoint_id and d.job_id = c.job_id and d.event_seq < c.event_seq
    order by d.event_seq desc limit 1
    for share
) b on true
