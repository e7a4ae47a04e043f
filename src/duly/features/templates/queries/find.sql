-- Purpose: an org's own words of these keys, in all their languages. Index: the primary key.
select * from duly.notification_templates where org_id = %(org_id)s and template_key = any (%(keys)s)
