-- Purpose: give a template its words. Index: the primary key.
insert into duly.notification_templates (org_id, template_key, locale, subject, body, updated_by)
values (%(org_id)s, %(template_key)s, %(locale)s, %(subject)s, %(body)s, %(updated_by)s)
on conflict (org_id, template_key, locale) do update
set subject = excluded.subject, body = excluded.body, updated_by = excluded.updated_by, updated_at = duly.now()
returning *
