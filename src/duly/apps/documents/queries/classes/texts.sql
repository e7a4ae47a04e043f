-- Purpose: the beginning of what was read out of a document. Index: the primary key.
select c.page_number, c.text from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s and c.chunk_index < %(limit)s
order by c.chunk_index
