-- Purpose: note who changed what, and why; in the transaction of the change. Rows are written once.
insert into duly.audit_entries (
    org_id, entry_id, occurred_at, actor_type, actor_id, action, target_type, target_id, reason, request_id,
    correlation_id, detail)
values (
    %(org_id)s, duly.uuid7(), duly.now(), %(actor_type)s, %(actor_id)s, %(action)s, %(target_type)s, %(target_id)s,
    %(reason)s, %(request_id)s, %(correlation_id)s, %(detail)s)
