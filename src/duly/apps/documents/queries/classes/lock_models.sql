-- Purpose: models of an org take over one after the other. Locks: an advisory one, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('documents.class_models:' || %(org_id)s::text, 0))
