-- Purpose: a remote folder was read so far, unless somebody else has moved on from where we began.
insert into documents.connector_cursors as c (org_id, connector_id, remote_path, cursor)
values (%(org_id)s, %(connector_id)s, %(remote_path)s, %(cursor)s)
on conflict (org_id, connector_id, remote_path) do update set cursor = excluded.cursor, updated_at = duly.now()
where c.cursor is not distinct from %(before)s::text
