-- Purpose: how many other files somebody is about to send.
select count(*) from documents.uploads
where org_id = %(org_id)s and created_by = %(created_by)s and sha256 <> %(sha256)s
