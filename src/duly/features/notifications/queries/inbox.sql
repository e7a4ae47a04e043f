-- Purpose: what was told to somebody in the product, the newest first. Index: notifications_of_recipient.
select * from duly.notifications n
where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s and n.delivery_status = 'sent'
  and (%(before)s::uuid is null or n.notification_id < %(before)s)
  and (not %(unread)s or n.read_at is null)
order by n.notification_id desc
limit %(limit)s
