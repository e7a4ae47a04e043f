-- Purpose: a document is being read, at its current version.
update documents.documents set status = 'extracting', updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s and version = %(version)s
