-- Purpose: forget log-ins whose time is over.
-- Locks: the rows, skipping what others hold. Index: sessions_expiry, then the primary key.
with old as materialized (
    select s.org_id, s.session_hash from duly.sessions s
    where s.expires_at <= duly.now() order by s.expires_at limit %(limit)s for update skip locked
)
delete from duly.sessions s using old o where s.org_id = o.org_id and s.session_hash = o.session_hash
