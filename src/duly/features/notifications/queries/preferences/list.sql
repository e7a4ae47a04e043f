-- Purpose: what a recipient wants, by template. Index: the primary key.
select * from duly.notification_preferences
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s
order by template_key
