-- Purpose: write the results of delivery attempts. Transition: pending -> sent, failed, suppressed, or still pending.
-- Index: the primary key. Fence: only pending notifications of the same delivery job, or of none: of two concurrent
-- writers the second changes nothing.
update duly.notifications n set
    delivery_status = w.status,
    attempt_count = n.attempt_count + w.attempts,
    last_error = coalesce(w.error, n.last_error),
    subject = coalesce(w.subject, n.subject),
    body = coalesce(w.body, n.body),
    sent_at = case when w.status = 'sent' then duly.now() end
from jsonb_to_recordset(%(rows)s::jsonb) as w(
    org_id uuid, notification_id uuid, status text, attempts integer, error text, subject text, body text)
where n.org_id = w.org_id and n.notification_id = w.notification_id and n.delivery_status = 'pending'
  and n.delivery_job_id is not distinct from %(job_id)s
returning n.notification_id
