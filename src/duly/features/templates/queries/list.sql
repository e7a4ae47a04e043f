-- Purpose: the next of an org's own templates, by key and language. Index: the primary key.
select * from duly.notification_templates
where org_id = %(org_id)s and (template_key, locale) > (%(key)s, %(locale)s)
order by template_key, locale
limit %(limit)s
