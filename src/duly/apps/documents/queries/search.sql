-- name: lock
-- Purpose: the number of the transaction's org in the index.
-- Locks: the org's row of search_stats, to the end: words of an org are changed by one transaction at a time.
select documents.search_tag()

-- name: near
-- Purpose: words of the transaction's org that are written much like these.
-- Index: search_terms_near, through a function: row level security would keep it from being used.
select word, lexeme, df, df2, df4 from documents.near_terms(%(words)s)

-- name: stems
-- Purpose: the stems of single words, for showing what was found.
select w.word, array(
    select distinct l.lexeme from (values ('german'::regconfig), ('english'), ('simple')) c(config)
    cross join unnest(to_tsvector(c.config, w.word)) l)
from unnest(%(words)s::text[]) w(word)
