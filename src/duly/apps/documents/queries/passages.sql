-- name: delete
-- Purpose: take a document out of the search; its words are discounted by a trigger.
with chunks as (
    delete from documents.document_chunks where org_id = %(org_id)s and document_id = %(document_id)s
)
delete from documents.chunk_terms where org_id = %(org_id)s and document_id = %(document_id)s

-- name: insert
-- Purpose: all passages of a document at once.
insert into documents.document_chunks
    (org_id, document_id, extraction_id, chunk_index, page_number, element_type, text, metadata, language)
select %(org_id)s, %(document_id)s, %(extraction_id)s, p.index, p.page, p.type, p.text, p.metadata::jsonb, p.language
from unnest(%(indexes)s::integer[], %(pages)s::integer[], %(types)s::text[], %(texts)s::text[],
            %(metadata)s::text[], %(languages)s::text[]) p(index, page, type, text, metadata, language)

-- name: list
-- Purpose: the passages of a document in their order, from one on. Index: the primary key.
select c.chunk_index, c.page_number, c.element_type, c.language, c.text, c.metadata -> 'spans'
from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s and c.chunk_index >= %(start)s
order by c.chunk_index
limit %(limit)s
