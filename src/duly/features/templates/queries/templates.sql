-- name: count
-- Purpose: count the templates of an org. Index: the primary key.
select count(*) as templates from duly.notification_templates where org_id = %(org_id)s

-- name: find
-- Purpose: read the templates of an org with these keys, in all locales. Index: the primary key.
select * from duly.notification_templates where org_id = %(org_id)s and template_key = any (%(keys)s)

-- name: list
-- Purpose: read the templates of an org by key and locale. Index: the primary key.
select * from duly.notification_templates
where org_id = %(org_id)s and (template_key, locale) > (%(key)s, %(locale)s)
order by template_key, locale
limit %(limit)s

-- name: remove
-- Purpose: remove a template of an org and return the row. Index: the primary key.
delete from duly.notification_templates
where org_id = %(org_id)s and template_key = %(template_key)s and locale = %(locale)s
returning *

-- name: set
-- Purpose: create or replace a template of an org. Index: the primary key.
insert into duly.notification_templates (org_id, template_key, locale, subject, body, updated_by)
values (%(org_id)s, %(template_key)s, %(locale)s, %(subject)s, %(body)s, %(updated_by)s)
on conflict (org_id, template_key, locale) do update
set subject = excluded.subject, body = excluded.body, updated_by = excluded.updated_by, updated_at = duly.now()
returning *
