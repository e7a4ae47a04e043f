-- Purpose: the files that somebody has begun to send, the last one first.
-- Index: uploads (org_id, created_by, sha256); at most a hundred.
select to_jsonb(u) - 'org_id' - 'created_by' || jsonb_build_object('received', (
    select count(*) from documents.upload_parts p where p.org_id = u.org_id and p.upload_id = u.upload_id))
from documents.uploads u
where u.org_id = %(org_id)s and u.created_by = %(created_by)s
order by u.created_at desc, u.upload_id
