-- Purpose: somebody has read some of it, or without ids all of it. Index: notifications_of_recipient.
update duly.notifications n set read_at = duly.now()
where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s
  and n.delivery_status = 'sent' and n.read_at is null
  and (%(notification_ids)s::uuid[] is null or n.notification_id = any (%(notification_ids)s))
