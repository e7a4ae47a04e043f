-- name: record
-- Purpose: write an audit entry in the transaction of the change. An entry whose id and time come from its job already
-- exists when the job is retried, and stays as it is. Index: the primary key.
insert into duly.audit_entries (
    org_id, entry_id, occurred_at, actor_type, actor_id, action, target_type, target_id, reason, request_id,
    correlation_id, detail)
values (
    %(org_id)s, coalesce(%(entry_id)s::uuid, duly.uuid7()), coalesce(%(occurred_at)s::timestamptz, duly.now()),
    %(actor_type)s, %(actor_id)s, %(action)s, %(target_type)s, %(target_id)s,
    %(reason)s, %(request_id)s, %(correlation_id)s, %(detail)s)
on conflict do nothing
