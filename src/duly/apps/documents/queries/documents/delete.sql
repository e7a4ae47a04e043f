-- Purpose: a document and everything that hangs on it.
delete from documents.documents where org_id = %(org_id)s and document_id = %(document_id)s
