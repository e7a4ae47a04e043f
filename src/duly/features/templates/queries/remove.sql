-- Purpose: forget an org's own words. Index: the primary key.
delete from duly.notification_templates
where org_id = %(org_id)s and template_key = %(template_key)s and locale = %(locale)s
returning *
