-- Purpose: forget secrets of webhooks that sign no longer. Every endpoint has a few, so all of them are looked at.
-- Locks: the rows, skipping what others hold. Index: none, then the primary key.
with old as materialized (
    select s.org_id, s.endpoint_id, s.secret_id from duly.webhook_secrets s
    where s.expires_at <= duly.now() limit %(limit)s for update skip locked
)
delete from duly.webhook_secrets s using old o
where s.org_id = o.org_id and s.endpoint_id = o.endpoint_id and s.secret_id = o.secret_id
