-- Purpose: what became of a try, or of several: told, put off, failed or not wanted. Index: the primary key.
-- Fence: only what is still pending and in the same hands: those of a job, or nobody's. Whoever comes second changes nothing.
update duly.notifications n set
    delivery_status = w.status,
    attempt_count = n.attempt_count + w.tries,
    last_error = coalesce(w.error, n.last_error),
    subject = coalesce(w.subject, n.subject),
    body = coalesce(w.body, n.body),
    sent_at = case when w.status = 'sent' then duly.now() end
from jsonb_to_recordset(%(rows)s::jsonb) as w(
    org_id uuid, notification_id uuid, status text, tries integer, error text, subject text, body text)
where n.org_id = w.org_id and n.notification_id = w.notification_id and n.delivery_status = 'pending'
  and n.delivery_job_id is not distinct from %(job_id)s
returning n.notification_id
