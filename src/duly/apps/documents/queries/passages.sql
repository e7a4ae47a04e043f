-- name: delete
-- Purpose: remove a document from the index; a trigger subtracts its terms from the document frequencies.
with chunks as (
    delete from documents.document_chunks where org_id = %(org_id)s and document_id = %(document_id)s
)
delete from documents.chunk_terms where org_id = %(org_id)s and document_id = %(document_id)s

-- name: insert
-- Purpose: insert all passages of a document.
insert into documents.document_chunks
    (org_id, document_id, extraction_id, chunk_index, page_number, element_type, text, metadata, language)
select %(org_id)s, %(document_id)s, %(extraction_id)s, p.index, p.page, p.type, p.text, p.metadata::jsonb, p.language
from unnest(%(indexes)s::integer[], %(pages)s::integer[], %(types)s::text[], %(texts)s::text[],
            %(metadata)s::text[], %(languages)s::text[]) p(index, page, type, text, metadata, language)

-- name: insert_terms
-- Purpose: insert the terms of a document's passages, each with the parts of its compounds and the terms of the name.
-- Locks: the org's row of search_stats, locked before by `search/lock`; a trigger updates the document frequencies.
insert into documents.chunk_terms (org_id, document_id, chunk_index, words, tsv)
select %(org_id)s, %(document_id)s, p.index, (select coalesce(sum(cardinality(w.positions)), 0) from unnest(own.tsv) w),
       documents.marked(%(tag)s, documents.tagged(%(tag)s,
           setweight(own.tsv, 'D') || setweight(to_tsvector('german', p.parts), 'C')
           || setweight(to_tsvector('german', %(name)s), 'B')))
from unnest(%(indexes)s::integer[], %(texts)s::text[], %(parts)s::text[], %(configs)s::regconfig[])
    p(index, text, parts, config)
cross join lateral (select to_tsvector(p.config, p.text) offset 0) own(tsv)

-- name: list
-- Purpose: list the passages of a document in order, from one on. Index: the primary key.
select c.chunk_index, c.page_number, c.element_type, c.language, c.text, c.metadata -> 'spans'
from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s and c.chunk_index >= %(start)s
order by c.chunk_index
limit %(limit)s

-- name: rename
-- Purpose: replace the terms of a document's name. Rows are deleted and inserted: the triggers know no updates of terms.
-- Locks: the org's row of search_stats, locked before by `search/lock`; triggers update the document frequencies.
with gone as (
    delete from documents.chunk_terms where org_id = %(org_id)s and document_id = %(document_id)s returning *
)
insert into documents.chunk_terms (org_id, document_id, chunk_index, words, tsv)
select g.org_id, g.document_id, g.chunk_index, g.words, documents.marked(%(tag)s,
           ts_filter(g.tsv, '{c,d}')
           || documents.tagged(%(tag)s, setweight(to_tsvector('german', %(name)s), 'B')))
from gone g
