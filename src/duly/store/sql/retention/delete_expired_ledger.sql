-- Purpose: forget idempotency keys whose time is over, whatever their job is doing: such a key is free again.
-- Locks: the rows, skipping what an enqueue is just taking over. Index: ledger_expiry, then the primary key.
with old as materialized (
    select l.org_id, l.idempotency_key from duly.ledger l
    where l.expires_at <= duly.now() limit %(limit)s for update skip locked
)
delete from duly.ledger l using old o
where l.org_id = o.org_id and l.idempotency_key = o.idempotency_key
