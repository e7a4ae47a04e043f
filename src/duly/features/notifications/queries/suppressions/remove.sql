-- Purpose: send to a recipient again. Index: the primary key.
delete from duly.notification_suppressions
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s
returning *
