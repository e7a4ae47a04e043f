-- name: upsert
-- Purpose: start an upload, or resume the one of the same file.
insert into documents.uploads (org_id, sha256, size, part_size, created_by)
values (%(org_id)s, %(sha256)s, %(size)s, %(part_size)s, %(created_by)s)
on conflict (org_id, created_by, sha256) do update set created_at = duly.now(), size = excluded.size
returning upload_id, size, part_size

-- name: read
-- Purpose: return an upload of a principal.
select upload_id, sha256, size, part_size from documents.uploads
where org_id = %(org_id)s and upload_id = %(upload_id)s and created_by = %(created_by)s

-- name: list
-- Purpose: return the open uploads of a principal, newest first.
-- Index: uploads (org_id, created_by, sha256); at most a hundred.
select to_jsonb(u) - 'org_id' - 'created_by' || jsonb_build_object('received', (
    select count(*) from documents.upload_parts p where p.org_id = u.org_id and p.upload_id = u.upload_id))
from documents.uploads u
where u.org_id = %(org_id)s and u.created_by = %(created_by)s
order by u.created_at desc, u.upload_id

-- name: count_others
-- Purpose: count the open uploads of a principal for other files.
select count(*) from documents.uploads
where org_id = %(org_id)s and created_by = %(created_by)s and sha256 <> %(sha256)s

-- name: delete
-- Purpose: delete an upload that is finished or abandoned.
delete from documents.uploads where org_id = %(org_id)s and upload_id = %(upload_id)s

-- name: delete_expired
-- Purpose: delete the uploads of an org that were not resumed for a week.
delete from documents.uploads where org_id = %(org_id)s and created_at < duly.now() - make_interval(days => 7)
returning upload_id

-- name: list_parts
-- Purpose: return the received parts of an upload.
select part from documents.upload_parts where org_id = %(org_id)s and upload_id = %(upload_id)s order by part

-- name: upsert_part
-- Purpose: record a received part; sent again, it replaces the one before.
insert into documents.upload_parts (org_id, upload_id, part, sha256, size)
values (%(org_id)s, %(upload_id)s, %(part)s, %(sha256)s, %(size)s)
on conflict (org_id, upload_id, part) do update set sha256 = excluded.sha256, size = excluded.size

-- name: delete_parts_of_other_size
-- Purpose: drop the received parts of a file that is announced again with another size. Index: uploads (org_id, created_by,
-- sha256), then the primary key of parts.
delete from documents.upload_parts p
using documents.uploads u
where u.org_id = %(org_id)s and u.created_by = %(created_by)s and u.sha256 = %(sha256)s and u.size <> %(size)s
  and p.org_id = u.org_id and p.upload_id = u.upload_id
