-- Purpose: words of the transaction's org that are written much like these.
-- Index: search_terms_near, through a function: row level security would keep it from being used.
select word, lexeme, df, df2, df4 from documents.near_terms(%(words)s)
