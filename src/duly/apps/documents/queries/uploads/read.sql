-- Purpose: an upload of somebody.
select upload_id, sha256, size, part_size from documents.uploads
where org_id = %(org_id)s and upload_id = %(upload_id)s and created_by = %(created_by)s
