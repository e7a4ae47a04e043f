-- Purpose: which version a document is at.
select d.version from documents.documents d where d.org_id = %(org_id)s and d.document_id = %(document_id)s
