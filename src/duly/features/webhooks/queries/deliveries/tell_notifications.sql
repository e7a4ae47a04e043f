-- Purpose: note on notifications what became of the messages that carried them. What was told stays told:
-- a message may be sent again by hand. Locks: the notifications, in the order of their keys. Index: the primary key.
with told as materialized (
    select k.*
    from unnest(%(org_ids)s::uuid[], %(notification_ids)s::uuid[], %(statuses)s::text[], %(tries)s::integer[], %(errors)s::text[])
        as k(org_id, notification_id, status, tries, error)
    join duly.notifications n on n.org_id = k.org_id and n.notification_id = k.notification_id
    where n.delivery_status <> 'sent'
    order by k.org_id, k.notification_id
    for no key update of n
)
update duly.notifications n set
    delivery_status = case k.status when 'delivered' then 'sent' when 'failed' then 'failed' else n.delivery_status end,
    attempt_count = k.tries,
    last_error = k.error,
    sent_at = case when k.status = 'delivered' then duly.now() else n.sent_at end
from told k
where n.org_id = k.org_id and n.notification_id = k.notification_id
