-- Purpose: whoever files or removes a content of an org does so one after the other.
-- Locks: an advisory one, until the end of the transaction; taken before any row.
select pg_advisory_xact_lock(hashtextextended('documents:' || %(org_id)s::text || ':' || %(sha256)s, 0))
