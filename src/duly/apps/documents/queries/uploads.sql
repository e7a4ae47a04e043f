-- name: begin
-- Purpose: a new upload, or the one that was begun before.
insert into documents.uploads (org_id, sha256, size, part_size, created_by)
values (%(org_id)s, %(sha256)s, %(size)s, %(part_size)s, %(created_by)s)
on conflict (org_id, created_by, sha256) do update set created_at = duly.now(), size = excluded.size
returning upload_id, size, part_size

-- name: count
-- Purpose: how many other files somebody is about to send.
select count(*) from documents.uploads
where org_id = %(org_id)s and created_by = %(created_by)s and sha256 <> %(sha256)s

-- name: delete
-- Purpose: an upload that is finished or given up.
delete from documents.uploads where org_id = %(org_id)s and upload_id = %(upload_id)s

-- name: delete_old
-- Purpose: uploads of an org that nobody has gone on with for a week.
delete from documents.uploads where org_id = %(org_id)s and created_at < duly.now() - make_interval(days => 7)
returning upload_id

-- name: forget_parts
-- Purpose: of a file that is announced again with another size nothing has come. Index: uploads (org_id, created_by,
-- sha256), then the primary key of parts.
delete from documents.upload_parts p
using documents.uploads u
where u.org_id = %(org_id)s and u.created_by = %(created_by)s and u.sha256 = %(sha256)s and u.size <> %(size)s
  and p.org_id = u.org_id and p.upload_id = u.upload_id

-- name: list
-- Purpose: the files that somebody has begun to send, the last one first.
-- Index: uploads (org_id, created_by, sha256); at most a hundred.
select to_jsonb(u) - 'org_id' - 'created_by' || jsonb_build_object('received', (
    select count(*) from documents.upload_parts p where p.org_id = u.org_id and p.upload_id = u.upload_id))
from documents.uploads u
where u.org_id = %(org_id)s and u.created_by = %(created_by)s
order by u.created_at desc, u.upload_id

-- name: parts
-- Purpose: what has come of an upload.
select part from documents.upload_parts where org_id = %(org_id)s and upload_id = %(upload_id)s order by part

-- name: put_part
-- Purpose: a part has come; sent again, it replaces the one before.
insert into documents.upload_parts (org_id, upload_id, part, sha256, size)
values (%(org_id)s, %(upload_id)s, %(part)s, %(sha256)s, %(size)s)
on conflict (org_id, upload_id, part) do update set sha256 = excluded.sha256, size = excluded.size

-- name: read
-- Purpose: an upload of somebody.
select upload_id, sha256, size, part_size from documents.uploads
where org_id = %(org_id)s and upload_id = %(upload_id)s and created_by = %(created_by)s
