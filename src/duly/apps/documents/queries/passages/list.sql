-- Purpose: the passages of a document in their order, from one on. Index: the primary key.
select c.chunk_index, c.page_number, c.element_type, c.language, c.text, c.metadata -> 'spans'
from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s and c.chunk_index >= %(start)s
order by c.chunk_index
limit %(limit)s
