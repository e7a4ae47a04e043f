-- Purpose: of a file that is announced again with another size nothing has come. Index: uploads (org_id, created_by,
-- sha256), then the primary key of parts.
delete from documents.upload_parts p
using documents.uploads u
where u.org_id = %(org_id)s and u.created_by = %(created_by)s and u.sha256 = %(sha256)s and u.size <> %(size)s
  and p.org_id = u.org_id and p.upload_id = u.upload_id
