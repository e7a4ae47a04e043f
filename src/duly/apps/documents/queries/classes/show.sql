-- Purpose: the document has this type, unless somebody has said what it is. Locks: its row.
update documents.documents set doc_type = %(doc_type)s, doc_type_confidence = %(confidence)s, updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s and not doc_type_confirmed
returning 1
