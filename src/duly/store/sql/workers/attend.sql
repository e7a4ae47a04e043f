-- Purpose: be present: a lock that ends with this session, and so with the process at its other end. It lasts beyond
-- the transaction. Shared, because the session before this one may not have ended yet; that of an earlier id goes first.
select pg_advisory_unlock_all(), pg_try_advisory_lock_shared(uuid_hash_extended(%(worker_id)s, 0))
