-- Purpose: a new upload, or the one that was begun before.
insert into documents.uploads (org_id, sha256, size, part_size, created_by)
values (%(org_id)s, %(sha256)s, %(size)s, %(part_size)s, %(created_by)s)
on conflict (org_id, created_by, sha256) do update set created_at = duly.now(), size = excluded.size
returning upload_id, size, part_size
