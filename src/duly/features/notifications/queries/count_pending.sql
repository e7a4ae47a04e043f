-- Purpose: how many notifications of an org are still to be told, up to a number. Index: notifications_pending.
select count(*) as pending from (
    select from duly.notifications n
    where n.org_id = %(org_id)s and n.delivery_status = 'pending'
    limit %(most)s
) w
