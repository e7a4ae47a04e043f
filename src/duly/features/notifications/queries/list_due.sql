-- Purpose: read due notifications without a delivery, up to `max_per_org` of each org, with the preferences of their
-- recipients. Those of suspended orgs and of `excluded_orgs` wait. Locks: none; the writes that follow are fenced.
-- Index: notifications_to_hand_over; then the primary keys of preferences, suppressions and jobs.
with due as materialized (
    select n.* from duly.notifications n
    where n.delivery_status = 'pending' and n.delivery_job_id is null and n.scheduled_at <= duly.now()
      and n.org_id <> all (%(excluded_orgs)s::uuid[])
      and exists (select from duly.organizations o where o.org_id = n.org_id and o.status = 'active')
    order by n.scheduled_at
    limit %(max_rows)s
), turns as (
    select d.*, row_number() over (partition by d.org_id order by d.scheduled_at, d.notification_id) as turn from due d
)
select t.*,
       (select s.reason from duly.notification_suppressions s
        where s.org_id = t.org_id and s.channel = t.channel and s.recipient = t.recipient) as suppressed_for,
       not coalesce((select p.wanted from duly.notification_preferences p
                     where p.org_id = t.org_id and p.channel = t.channel and p.recipient = t.recipient
                       and p.template_key in (t.template_key, '')
                     order by p.template_key desc limit 1), true) as opted_out,
       (select r.subject_id from duly.job_records r where r.org_id = t.org_id and r.job_id = t.job_id) as job_subject_id
from turns t
where t.turn <= %(max_per_org)s
order by t.scheduled_at, t.notification_id
