-- Purpose: a page of the best passages, with what is shown of them.
-- Index: chunk_terms_tsv, through a function: row level security would keep it from being used.
select f.document_id, d.name, d.node_id, d.doc_type, nullif(f.chunk_index, -1), c.page_number, c.element_type, c.language,
       c.text, f.score, f.total, f.complete
from documents.find_passages(
    %(principal)s, %(any)s::tsquery, %(all)s::tsquery, %(wide)s::tsquery, %(whole)s::tsquery, %(most)s,
    %(terms)s::tsquery[], %(weights)s::float8[], %(filters)s::jsonb, %(grouped)s, %(limit)s, %(offset)s) f
join documents.documents d on d.org_id = %(org_id)s and d.document_id = f.document_id
left join documents.document_chunks c
    on c.org_id = %(org_id)s and c.document_id = f.document_id and c.chunk_index = f.chunk_index
order by f.score desc, f.document_id, f.chunk_index
