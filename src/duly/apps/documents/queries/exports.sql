-- name: select_documents
-- Purpose: return the visible documents that an export selects, with their numbers of pages and passages; null filters
-- match all. A folder includes the folders below it. Index: the primary keys.
with recursive below as (
    select n.node_id from documents.nodes n where n.org_id = %(org_id)s and n.node_id = %(node_id)s
    union all
    select n.node_id from below b join documents.nodes n on n.org_id = %(org_id)s and n.parent_id = b.node_id
)
select d.document_id, d.page_count, d.chunk_count
from documents.documents d
where d.org_id = %(org_id)s
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
  and (%(document_ids)s::uuid[] is null or d.document_id = any(%(document_ids)s))
  and (%(node_id)s::uuid is null or d.node_id in (select b.node_id from below b))
  and (%(doc_type)s::text is null or d.doc_type = %(doc_type)s)
order by d.document_id
limit %(limit)s

-- name: read_documents
-- Purpose: return documents by id, as far as they are visible now. Index: the primary key.
select to_jsonb(d) - 'org_id' from documents.documents d
where d.org_id = %(org_id)s and d.document_id = any(%(document_ids)s)
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))

-- name: list_passages
-- Purpose: return the passages of a document, or of a range of its pages. Index: the primary key.
select c.chunk_index, c.page_number, c.element_type, c.text from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
  and (%(first)s::integer is null or coalesce(c.page_number, 1) between %(first)s and %(last)s)
order by c.chunk_index
