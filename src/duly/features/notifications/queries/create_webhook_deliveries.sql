-- Purpose: create webhook deliveries of notifications; the webhook deliverer settles them. Index: the primary keys.
-- Fence: only pending notifications without a delivery; both rows are written, or neither. A removed or disabled
-- endpoint gets none.
with assigned as (
    update duly.notifications n set delivery_job_id = duly.uuid7(), subject = w.subject, body = w.body
    from jsonb_to_recordset(%(rows)s::jsonb) as w(
        org_id uuid, notification_id uuid, endpoint_id uuid, subject text, body text)
    join duly.webhook_endpoints e on e.org_id = w.org_id and e.endpoint_id = w.endpoint_id and e.disabled_at is null
    where n.org_id = w.org_id and n.notification_id = w.notification_id
      and n.delivery_status = 'pending' and n.delivery_job_id is null
    returning n.*, w.endpoint_id
), written as (
    insert into duly.webhook_deliveries (
        org_id, endpoint_id, job_id, event_seq, event_type, data, notification_id, due_at)
    select g.org_id, g.endpoint_id, g.delivery_job_id, 1, 'notification',
           jsonb_build_object(
               'notification_id', g.notification_id, 'template_key', g.template_key, 'locale', g.locale,
               'subject', g.subject, 'body', g.body, 'payload', g.payload, 'job_id', g.job_id),
           g.notification_id, duly.now()
    from assigned g
)
select g.notification_id from assigned g
