-- Purpose: what has come of an upload.
select part from documents.upload_parts where org_id = %(org_id)s and upload_id = %(upload_id)s order by part
