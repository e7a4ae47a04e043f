-- name: assign_jobs
-- Purpose: write the delivery jobs of notifications. Index: the primary key. Under the locks of `lock_due`.
update duly.notifications n set delivery_job_id = k.job_id
from unnest(%(notification_ids)s::uuid[], %(job_ids)s::uuid[]) as k(notification_id, job_id)
where n.org_id = %(org_id)s and n.notification_id = k.notification_id

-- name: count_pending
-- Purpose: count the pending notifications of an org, up to a maximum. Index: notifications_pending.
select count(*) as pending from (
    select from duly.notifications n
    where n.org_id = %(org_id)s and n.delivery_status = 'pending'
    limit %(max_count)s
) w

-- name: count_unread
-- Purpose: count the unread in-app notifications of a user, up to a maximum. Index: notifications_of_recipient.
select count(*) as unread from (
    select from duly.notifications n
    where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s
      and n.delivery_status = 'sent' and n.read_at is null
    limit %(max_count)s
) u

-- name: find_existing
-- Purpose: read the ids of added notifications, old and new, by their position in the batch. Index: notifications_once.
select w.position, n.notification_id
from jsonb_to_recordset(%(rows)s::jsonb) as w(
    position integer, org_id uuid, channel text, recipient text, template_key text, payload_hash text, bucket text,
    scheduled_at timestamptz)
join duly.notifications n
  on n.org_id = w.org_id and n.channel = w.channel and n.recipient = w.recipient and n.template_key = w.template_key
 and n.payload_hash = w.payload_hash
 and n.schedule_bucket = coalesce(
     w.bucket, to_char(coalesce(w.scheduled_at, duly.now()) at time zone 'UTC', 'YYYY-MM-DD'))

-- name: find_scan_end
-- Purpose: read the id at which a scan of `max_rows` notifications of an org ends; no row if there are fewer.
-- Index: the primary key backwards.
select n.notification_id from duly.notifications n
where n.org_id = %(org_id)s and n.notification_id < %(before)s
order by n.notification_id desc
offset %(max_rows)s - 1 limit 1

-- name: list
-- Purpose: read the notifications of an org between two ids, newest first; a filter that is null does not apply.
-- Index: the primary key backwards, or notifications_of_recipient, or notifications_by_job.
select * from duly.notifications n
where n.org_id = %(org_id)s
  and n.notification_id < %(before)s and n.notification_id >= %(scan_end)s
  and (%(status)s::text is null or n.delivery_status = %(status)s)
  and (%(channel)s::text is null or n.channel = %(channel)s)
  and (%(recipient)s::text is null or n.recipient = %(recipient)s)
  and (%(job_id)s::uuid is null or n.job_id = %(job_id)s)
order by n.notification_id desc
limit %(limit)s

-- name: list_inbox
-- Purpose: read the in-app notifications of a user, newest first. Index: notifications_of_recipient.
select * from duly.notifications n
where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s and n.delivery_status = 'sent'
  and (%(before)s::uuid is null or n.notification_id < %(before)s)
  and (not %(unread)s or n.read_at is null)
order by n.notification_id desc
limit %(limit)s

-- name: lock_due
-- Purpose: lock those of these due notifications that no other dispatcher holds. Index: the primary key.
-- Locks: the rows, until their jobs are assigned; locked ones are skipped.
select n.notification_id, n.scheduled_at from duly.notifications n
where n.org_id = %(org_id)s and n.notification_id = any (%(notification_ids)s)
  and n.delivery_status = 'pending' and n.delivery_job_id is null
order by n.notification_id
for update skip locked

-- name: mark_read
-- Purpose: mark in-app notifications of a user as read, or with null ids all. Index: notifications_of_recipient.
update duly.notifications n set read_at = duly.now()
where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s
  and n.delivery_status = 'sent' and n.read_at is null
  and (%(notification_ids)s::uuid[] is null or n.notification_id = any (%(notification_ids)s))

-- name: read
-- Purpose: read a notification of an org. Index: the primary key.
select * from duly.notifications where org_id = %(org_id)s and notification_id = %(notification_id)s

-- name: read_pending
-- Purpose: read a pending notification, with the preferences of its recipient. Index: the primary keys.
select n.*,
       (select s.reason from duly.notification_suppressions s
        where s.org_id = n.org_id and s.channel = n.channel and s.recipient = n.recipient) as suppressed_for,
       not coalesce((select p.wanted from duly.notification_preferences p
                     where p.org_id = n.org_id and p.channel = n.channel and p.recipient = n.recipient
                       and p.template_key in (n.template_key, '')
                     order by p.template_key desc limit 1), true) as opted_out,
       (select r.subject_id from duly.job_records r where r.org_id = n.org_id and r.job_id = n.job_id) as job_subject_id
from duly.notifications n
where n.org_id = %(org_id)s and n.notification_id = %(notification_id)s and n.delivery_status = 'pending'

-- name: resend
-- Purpose: send a notification again. Transition: failed or suppressed -> pending, without a delivery job, due now.
-- Fence: only these statuses; a concurrent second call changes nothing. Index: the primary key.
update duly.notifications n set delivery_status = 'pending', delivery_job_id = null, scheduled_at = duly.now()
where n.org_id = %(org_id)s and n.notification_id = %(notification_id)s and n.delivery_status in ('failed', 'suppressed')
returning n.*
