-- Purpose: an upload that is finished or given up.
delete from documents.uploads where org_id = %(org_id)s and upload_id = %(upload_id)s
