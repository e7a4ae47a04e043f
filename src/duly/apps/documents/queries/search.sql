-- name: find_passages
-- Purpose: find a page of the best passages by BM25, with their texts and documents.
-- Index: chunk_terms_tsv, through a function: row level security would prevent its use.
select f.document_id, d.name, d.node_id, d.doc_type, nullif(f.chunk_index, -1), c.page_number, c.element_type, c.language,
       c.text, f.score, f.total, f.complete
from documents.find_passages(
    %(principal)s, %(any)s::tsquery, %(all)s::tsquery, %(wide)s::tsquery, %(whole)s::tsquery, %(max_candidates)s,
    %(terms)s::tsquery[], %(weights)s::float8[], %(filters)s::jsonb, %(grouped)s, %(limit)s, %(offset)s) f
join documents.documents d on d.org_id = %(org_id)s and d.document_id = f.document_id
left join documents.document_chunks c
    on c.org_id = %(org_id)s and c.document_id = f.document_id and c.chunk_index = f.chunk_index
order by f.score desc, f.document_id, f.chunk_index

-- name: find_similar_terms
-- Purpose: find terms of the transaction's org that are spelled similarly to these words.
-- Index: search_terms_near, through a function: row level security would prevent its use.
select word, lexeme, df, df2, df4 from documents.near_terms(%(words)s)

-- name: lock
-- Purpose: lock the index of the transaction's org, and return the number of the org in it.
-- Locks: the org's row of search_stats until the transaction ends: one transaction at a time changes the terms of an org.
select documents.search_tag()

-- name: stem_query
-- Purpose: stem the words of a query in each language, with the document frequencies of the stems in the org.
--   A word without a stem is a stop word of that language. Without rows the org's index is empty.
select s.tag, s.chunks, w.position, w.is_part, c.config::text, l.lexeme, t.df, t.df2, t.df4
from documents.search_stats s
cross join unnest(%(positions)s::integer[], %(texts)s::text[], %(is_part)s::boolean[]) w(position, text, is_part)
join (values ('german'::regconfig), ('english'), ('simple')) c(config) on c.config = 'german'::regconfig or not w.is_part
left join lateral unnest(to_tsvector(c.config, w.text)) l on true
left join lateral (
    select t.* from documents.search_terms t where t.org_id = s.org_id and t.lexeme = l.lexeme limit 1) t on true
where s.org_id = %(org_id)s and s.chunks > 0

-- name: stem_words
-- Purpose: stem single words in all languages, to highlight matches.
select w.word, array(
    select distinct l.lexeme from (values ('german'::regconfig), ('english'), ('simple')) c(config)
    cross join unnest(to_tsvector(c.config, w.word)) l)
from unnest(%(words)s::text[]) w(word)
