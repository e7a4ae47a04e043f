-- name: count_pending
-- Purpose: how many notifications of an org are still to be told, up to a number. Index: notifications_pending.
select count(*) as pending from (
    select from duly.notifications n
    where n.org_id = %(org_id)s and n.delivery_status = 'pending'
    limit %(most)s
) w

-- name: count_unread
-- Purpose: how much somebody has not read, up to a number. Index: notifications_of_recipient.
select count(*) as unread from (
    select from duly.notifications n
    where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s
      and n.delivery_status = 'sent' and n.read_at is null
    limit %(most)s
) u

-- name: floor
-- Purpose: where a look at so many notifications of an org before a place ends; nothing if there are fewer.
-- Index: the primary key backwards.
select n.notification_id from duly.notifications n
where n.org_id = %(org_id)s and n.notification_id < %(before)s
order by n.notification_id desc
offset %(look)s - 1 limit 1

-- name: hand_over
-- Purpose: say which job delivers each of these. Index: the primary key. Under the locks of `hold`.
update duly.notifications n set delivery_job_id = k.job_id
from unnest(%(notification_ids)s::uuid[], %(job_ids)s::uuid[]) as k(notification_id, job_id)
where n.org_id = %(org_id)s and n.notification_id = k.notification_id

-- name: hold
-- Purpose: those of an org's due notifications that nobody else hands over just now. Index: the primary key.
-- Locks: the rows, until they are handed over; what another holds is skipped.
select n.notification_id, n.scheduled_at from duly.notifications n
where n.org_id = %(org_id)s and n.notification_id = any (%(notification_ids)s)
  and n.delivery_status = 'pending' and n.delivery_job_id is null
order by n.notification_id
for update skip locked

-- name: inbox
-- Purpose: what was told to somebody in the product, the newest first. Index: notifications_of_recipient.
select * from duly.notifications n
where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s and n.delivery_status = 'sent'
  and (%(before)s::uuid is null or n.notification_id < %(before)s)
  and (not %(unread)s or n.read_at is null)
order by n.notification_id desc
limit %(limit)s

-- name: mark_read
-- Purpose: somebody has read some of it, or without ids all of it. Index: notifications_of_recipient.
update duly.notifications n set read_at = duly.now()
where n.org_id = %(org_id)s and n.channel = 'in_app' and n.recipient = %(user_id)s
  and n.delivery_status = 'sent' and n.read_at is null
  and (%(notification_ids)s::uuid[] is null or n.notification_id = any (%(notification_ids)s))

-- name: read
-- Purpose: one notification of an org. Index: the primary key.
select * from duly.notifications where org_id = %(org_id)s and notification_id = %(notification_id)s

-- name: resend
-- Purpose: have one told again that was not told: failed or suppressed -> pending, in nobody's hands, due now.
-- Fence: only what has ended so; whoever comes second changes nothing. Index: the primary key.
update duly.notifications n set delivery_status = 'pending', delivery_job_id = null, scheduled_at = duly.now()
where n.org_id = %(org_id)s and n.notification_id = %(notification_id)s and n.delivery_status in ('failed', 'suppressed')
returning n.*
