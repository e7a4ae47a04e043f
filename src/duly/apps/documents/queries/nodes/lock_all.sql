-- Purpose: whoever changes the tree of an org does so one after the other: two moves could make a circle.
-- Locks: an advisory one, until the end of the transaction.
select pg_advisory_xact_lock(hashtextextended('documents.nodes:' || %(org_id)s::text, 0))
