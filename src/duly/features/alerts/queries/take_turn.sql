-- Purpose: be the one who looks, until the end of the transaction; false if somebody else is.
-- Locks: an advisory one of the transaction.
select pg_try_advisory_xact_lock(hashtextextended('duly.alerts', 0)) as mine
