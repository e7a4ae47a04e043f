-- Purpose: the passages of some pages of a document. Index: the primary key.
select c.chunk_index, c.page_number, c.element_type, c.text from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
  and (%(first)s::integer is null or coalesce(c.page_number, 1) between %(first)s and %(last)s)
order by c.chunk_index
