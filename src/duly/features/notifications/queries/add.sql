-- Purpose: add notifications; a recipient gets the same template and payload once per bucket, by default the day in
-- UTC. Index: notifications_once decides, also between concurrent transactions.
-- In the order of that index, so that transactions that add the same rows do not deadlock.
insert into duly.notifications (
    org_id, notification_id, job_id, channel, recipient, template_key, locale, payload, payload_hash,
    schedule_bucket, scheduled_at, created_by)
select n.org_id, duly.uuid7(), n.job_id, n.channel, n.recipient, n.template_key, n.locale, n.payload, n.payload_hash,
       coalesce(n.bucket, to_char(coalesce(n.scheduled_at, duly.now()) at time zone 'UTC', 'YYYY-MM-DD')),
       coalesce(n.scheduled_at, duly.now()), n.created_by
from jsonb_to_recordset(%(rows)s::jsonb) as n(
    org_id uuid, job_id uuid, channel text, recipient text, template_key text, locale text,
    payload jsonb, payload_hash text, bucket text, scheduled_at timestamptz, created_by text)
order by n.org_id, n.channel, n.recipient, n.template_key, n.payload_hash, 10
on conflict (org_id, channel, recipient, template_key, payload_hash, schedule_bucket) do nothing
returning notification_id
