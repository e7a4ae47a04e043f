-- Purpose: the ids under which these are noted already, in their order. Index: notifications_once.
select w.place, n.notification_id
from jsonb_to_recordset(%(rows)s::jsonb) as w(
    place integer, org_id uuid, channel text, recipient text, template_key text, payload_hash text, bucket text,
    scheduled_at timestamptz)
join duly.notifications n
  on n.org_id = w.org_id and n.channel = w.channel and n.recipient = w.recipient and n.template_key = w.template_key
 and n.payload_hash = w.payload_hash
 and n.schedule_bucket = coalesce(
     w.bucket, to_char(coalesce(w.scheduled_at, duly.now()) at time zone 'UTC', 'YYYY-MM-DD'))
