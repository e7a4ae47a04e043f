-- Purpose: take a document out of the search; its words are discounted by a trigger.
with chunks as (
    delete from documents.document_chunks where org_id = %(org_id)s and document_id = %(document_id)s
)
delete from documents.chunk_terms where org_id = %(org_id)s and document_id = %(document_id)s
