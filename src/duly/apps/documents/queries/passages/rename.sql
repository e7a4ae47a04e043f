-- Purpose: other words of a document's name at its passages. They are written anew: words are never updated.
-- Locks: the org's row of search_stats, taken before by `search/lock`; the counts follow by triggers.
with gone as (
    delete from documents.chunk_terms where org_id = %(org_id)s and document_id = %(document_id)s returning *
)
insert into documents.chunk_terms (org_id, document_id, chunk_index, words, tsv)
select g.org_id, g.document_id, g.chunk_index, g.words, documents.marked(%(tag)s,
           ts_filter(g.tsv, '{c,d}')
           || documents.tagged(%(tag)s, setweight(to_tsvector('german', %(name)s), 'B')))
from gone g
