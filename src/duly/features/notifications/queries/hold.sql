-- Purpose: those of an org's due notifications that nobody else hands over just now. Index: the primary key.
-- Locks: the rows, until they are handed over; what another holds is skipped.
select n.notification_id, n.scheduled_at from duly.notifications n
where n.org_id = %(org_id)s and n.notification_id = any (%(notification_ids)s)
  and n.delivery_status = 'pending' and n.delivery_job_id is null
order by n.notification_id
for update skip locked
