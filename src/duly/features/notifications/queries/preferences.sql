-- name: list
-- Purpose: read the preferences of a recipient by template. Index: the primary key.
select * from duly.notification_preferences
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s
order by template_key

-- name: remove
-- Purpose: remove the preference of a recipient for a template. Index: the primary key.
delete from duly.notification_preferences
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s and template_key = %(template_key)s

-- name: set
-- Purpose: set the preference of a recipient for a template; the empty key is for all others. Index: the primary key.
insert into duly.notification_preferences (org_id, channel, recipient, template_key, wanted, updated_by)
values (%(org_id)s, %(channel)s, %(recipient)s, %(template_key)s, %(wanted)s, %(updated_by)s)
on conflict (org_id, channel, recipient, template_key) do update
set wanted = excluded.wanted, updated_by = excluded.updated_by, updated_at = duly.now()
