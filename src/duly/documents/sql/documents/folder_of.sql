-- Purpose: where a document lies.
select d.node_id from documents.documents d where d.org_id = %(org_id)s and d.document_id = %(document_id)s
