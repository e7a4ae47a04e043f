-- Purpose: take the schedules whose next tick has come, of job types that this process knows.
-- Locks: the rows, until the end of the transaction; what another scheduler holds is skipped.
-- Index: schedules_due. A suspended org's schedules wait; `waiting` had their turn already.
select s.*, duly.now() as read_at
from duly.schedules s
where s.deleted_at is null and s.next_tick_at <= duly.now()
  and (s.retry_at is null or s.retry_at <= duly.now())
  and s.job_type = any (%(job_types)s) and s.schedule_id <> all (%(waiting)s)
  and exists (select from duly.organizations o where o.org_id = s.org_id and o.status = 'active')
order by s.next_tick_at
limit %(limit)s
for update of s skip locked
