-- Purpose: somebody says what a document is. Locks: its row.
with said as (
    insert into documents.confirmations (org_id, document_id, doc_type, confirmed_by)
    values (%(org_id)s, %(document_id)s, %(doc_type)s, %(confirmed_by)s)
)
update documents.documents set doc_type = %(doc_type)s, doc_type_confidence = 1, doc_type_confirmed = true,
    updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s
