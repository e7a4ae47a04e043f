-- Purpose: what a recipient said of a template no longer counts. Index: the primary key.
delete from duly.notification_preferences
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s and template_key = %(template_key)s
