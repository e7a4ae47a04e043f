-- Purpose: note who changed what, and why; in the transaction of the change. Rows are written once: one that has its id
-- and its time from its job is there already when the job is tried again. Index: the primary key.
insert into duly.audit_entries (
    org_id, entry_id, occurred_at, actor_type, actor_id, action, target_type, target_id, reason, request_id,
    correlation_id, detail)
values (
    %(org_id)s, coalesce(%(entry_id)s::uuid, duly.uuid7()), coalesce(%(occurred_at)s::timestamptz, duly.now()),
    %(actor_type)s, %(actor_id)s, %(action)s, %(target_type)s, %(target_id)s,
    %(reason)s, %(request_id)s, %(correlation_id)s, %(detail)s)
on conflict do nothing
