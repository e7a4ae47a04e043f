-- name: chunks
-- Purpose: the passages of some pages of a document. Index: the primary key.
select c.chunk_index, c.page_number, c.element_type, c.text from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
  and (%(first)s::integer is null or coalesce(c.page_number, 1) between %(first)s and %(last)s)
order by c.chunk_index

-- name: documents
-- Purpose: documents by their ids, as far as they are open now. Index: the primary key.
select to_jsonb(d) - 'org_id' from documents.documents d
where d.org_id = %(org_id)s and d.document_id = any(%(document_ids)s)
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
