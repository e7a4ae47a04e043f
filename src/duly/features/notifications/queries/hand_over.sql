-- Purpose: say which job delivers each of these. Index: the primary key. Under the locks of `hold`.
update duly.notifications n set delivery_job_id = k.job_id
from unnest(%(notification_ids)s::uuid[], %(job_ids)s::uuid[]) as k(notification_id, job_id)
where n.org_id = %(org_id)s and n.notification_id = k.notification_id
