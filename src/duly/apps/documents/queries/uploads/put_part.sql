-- Purpose: a part has come; sent again, it replaces the one before.
insert into documents.upload_parts (org_id, upload_id, part, sha256, size)
values (%(org_id)s, %(upload_id)s, %(part)s, %(sha256)s, %(size)s)
on conflict (org_id, upload_id, part) do update set sha256 = excluded.sha256, size = excluded.size
