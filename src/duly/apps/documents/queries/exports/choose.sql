-- Purpose: the documents that are asked for and open, with how much there is of each; null filters mean all.
-- A folder stands for all that lies below it. Index: the primary keys.
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
