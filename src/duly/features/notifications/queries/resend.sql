-- Purpose: have one told again that was not told: failed or suppressed -> pending, in nobody's hands, due now.
-- Fence: only what has ended so; whoever comes second changes nothing. Index: the primary key.
update duly.notifications n set delivery_status = 'pending', delivery_job_id = null, scheduled_at = duly.now()
where n.org_id = %(org_id)s and n.notification_id = %(notification_id)s and n.delivery_status in ('failed', 'suppressed')
returning n.*
