-- Purpose: one at a time takes a remote file.
-- Locks: an advisory one, until the end of the transaction; taken before that of its content, and any row.
select pg_advisory_xact_lock(hashtextextended(
    'import:' || %(org_id)s::text || ':' || %(connector_id)s::text || ':' || %(remote_id)s, 0))
