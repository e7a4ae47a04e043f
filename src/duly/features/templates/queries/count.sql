-- Purpose: how many templates an org has. Index: the primary key.
select count(*) as templates from duly.notification_templates where org_id = %(org_id)s
