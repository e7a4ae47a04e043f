-- Purpose: the words of a document's passages, with the parts of compounds and the name's words at each of them.
-- Locks: the org's row of search_stats, taken before by `search/lock`; the counts follow by a trigger.
insert into documents.chunk_terms (org_id, document_id, chunk_index, words, tsv)
select %(org_id)s, %(document_id)s, p.index, (select coalesce(sum(cardinality(w.positions)), 0) from unnest(own.tsv) w),
       documents.marked(%(tag)s, documents.tagged(%(tag)s,
           setweight(own.tsv, 'D') || setweight(to_tsvector('german', p.parts), 'C')
           || setweight(to_tsvector('german', %(name)s), 'B')))
from unnest(%(indexes)s::integer[], %(texts)s::text[], %(parts)s::text[], %(configs)s::regconfig[])
    p(index, text, parts, config)
cross join lateral (select to_tsvector(p.config, p.text) offset 0) own(tsv)
