-- Purpose: the number of the transaction's org in the index.
-- Locks: the org's row of search_stats, to the end: words of an org are changed by one transaction at a time.
select documents.search_tag()
