-- Purpose: forget notifications that were told, or could not be, so long ago.
-- Locks: the rows, skipping what others hold. Index: notifications_by_status, then the primary key.
with old as materialized (
    select n.org_id, n.notification_id from duly.notifications n
    where n.delivery_status in ('sent', 'failed', 'suppressed') and n.scheduled_at < duly.now() - %(keep)s::interval
    limit %(limit)s for update skip locked
)
delete from duly.notifications n using old o where n.org_id = o.org_id and n.notification_id = o.notification_id
