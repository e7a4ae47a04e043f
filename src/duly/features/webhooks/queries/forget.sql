-- Purpose: forget the messages that would be sent next to an endpoint that is gone, so that nobody looks at them again;
-- notifications among them have failed. Those behind them are never let go, and go with their partition.
-- Locks: the messages, then the notifications. Index: webhook_deliveries_due; the primary key.
with gone as (
    delete from duly.webhook_deliveries
    where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and status = 'pending' and not follows
    returning org_id, notification_id
)
update duly.notifications n set delivery_status = 'failed', last_error = 'the webhook was removed'
from gone g
where n.org_id = g.org_id and n.notification_id = g.notification_id and n.delivery_status = 'pending'
