-- Purpose: why nothing is sent to a recipient. Index: the primary key.
select * from duly.notification_suppressions
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s
