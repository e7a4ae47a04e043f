-- Purpose: one notification of an org. Index: the primary key.
select * from duly.notifications where org_id = %(org_id)s and notification_id = %(notification_id)s
