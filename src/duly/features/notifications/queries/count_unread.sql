-- Purpose: how much somebody has not read, up to a number. Index: notifications_of_recipient.
select count(*) as unread from (
    select from duly.notifications n
    where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s
      and n.delivery_status = 'sent' and n.read_at is null
    limit %(most)s
) u
