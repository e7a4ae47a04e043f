-- name: advance
-- Purpose: write how far the ticks are recorded, and the time of the next one; clear the error. Index: the primary key.
-- Under the lock of the schedule.
update duly.schedules set
    counted_until = %(counted_until)s, next_tick_at = %(next_tick_at)s,
    last_tick_at = coalesce(%(last_tick_at)s, last_tick_at), retry_at = null, last_error = null
where org_id = %(org_id)s and schedule_id = %(schedule_id)s

-- name: create
-- Purpose: create a schedule; no row if the org has one of that name. Index: schedules_by_name.
-- Waits for a node that creates it at the same time, so that its row is visible next.
insert into duly.schedules (
    org_id, name, cron, timezone, job_type, payload, missed_policy, project_id, next_tick_at, counted_until,
    created_by, created_at, updated_at)
values (
    %(org_id)s, %(name)s, %(cron)s, %(timezone)s, %(job_type)s, %(payload)s, %(missed_policy)s, %(project_id)s,
    %(next_tick_at)s, duly.now(), %(created_by)s, duly.now(), duly.now())
on conflict (org_id, name) where deleted_at is null do nothing
returning *, duly.now() as read_at

-- name: delete
-- Purpose: delete a schedule; the row and its ticks stay as history. Index: the primary key.
-- Under the lock of the schedule.
update duly.schedules set deleted_at = duly.now(), next_tick_at = null, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s

-- name: find_recorded
-- Purpose: return those of these ticks that are recorded. Index: the primary key.
-- Under the lock of the schedule, so that no other transaction records one of them meanwhile.
select t.tick_at from duly.schedule_ticks t
where t.org_id = %(org_id)s and t.schedule_id = %(schedule_id)s and t.tick_at = any (%(ticks)s)

-- name: list
-- Purpose: read the schedules of an org by name; all of them with a null limit. Index: schedules_by_name.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name > %(after)s and deleted_at is null
order by name
limit %(limit)s

-- name: lock
-- Purpose: lock a schedule for a change. Index: schedules_by_name. Locks: the row; waits for a scheduler that holds it.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name = %(name)s and deleted_at is null
for update

-- name: postpone
-- Purpose: postpone a schedule whose ticks could not be enqueued, with the error. Index: the primary key.
-- Its ticks stay due: they are enqueued when the cause is gone.
update duly.schedules set retry_at = duly.now() + %(pause)s, last_error = %(error)s
where org_id = %(org_id)s and schedule_id = %(schedule_id)s

-- name: read
-- Purpose: read a schedule of an org. Index: schedules_by_name.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name = %(name)s and deleted_at is null

-- name: read_ticks
-- Purpose: read the last ticks of some schedules before a time, up to a limit each, newest first, with the status of
-- their jobs; null if retention deleted the job. Index: the primary keys of ticks, records and states.
-- Lateral, with a limit: each row is read by its key, whatever the planner's estimate of the tables.
select t.*, j.*
from unnest(%(schedule_ids)s::uuid[]) k(schedule_id)
cross join lateral (
    select schedule_id, tick_at, disposition, job_id, recorded_at from duly.schedule_ticks
    where org_id = %(org_id)s and schedule_id = k.schedule_id and tick_at < %(before)s
    order by tick_at desc
    limit %(limit)s
) t
left join lateral (
    select status, outcome, started_at, finished_at from duly.jobs where org_id = %(org_id)s and job_id = t.job_id limit 1
) j on true

-- name: read_time_to_next_tick
-- Purpose: read the time until the next tick that is not due, of job types that this process knows.
-- Index: schedules_due.
select s.next_tick_at - duly.now() as remaining
from duly.schedules s
where s.deleted_at is null and s.next_tick_at > duly.now() and s.job_type = any (%(job_types)s)
order by s.next_tick_at
limit 1

-- name: record_ticks
-- Purpose: record ticks: the job that was enqueued, or null if it was missed.
-- The primary key allows one record per tick, whatever the number of schedulers.
insert into duly.schedule_ticks (org_id, schedule_id, tick_at, disposition, job_id, recorded_at)
select %(org_id)s, %(schedule_id)s, t.tick_at,
       case when t.job_id is null then 'missed' else 'enqueued' end, t.job_id, duly.now()
from unnest(%(ticks)s::timestamptz[], %(job_ids)s::uuid[]) as t(tick_at, job_id)

-- name: set_pause
-- Purpose: pause a schedule; a null `paused_by` resumes it. Index: the primary key.
-- Under the lock of the schedule.
update duly.schedules set
    paused_at = case when %(paused_by)s::text is not null then duly.now() end,
    paused_by = %(paused_by)s, pause_reason = %(reason)s, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
returning *, duly.now() as read_at

-- name: take_due
-- Purpose: lock the schedules whose next tick is due, of job types that this process knows.
-- Locks: the rows, until the end of the transaction; rows that another scheduler holds are skipped.
-- Index: schedules_due. Schedules of a suspended org wait; those in `excluded` had their turn already.
select s.*, duly.now() as read_at
from duly.schedules s
where s.deleted_at is null and s.next_tick_at <= duly.now()
  and (s.retry_at is null or s.retry_at <= duly.now())
  and s.job_type = any (%(job_types)s) and s.schedule_id <> all (%(excluded)s)
  and exists (select from duly.organizations o where o.org_id = s.org_id and o.status = 'active')
order by s.next_tick_at
limit %(limit)s
for update of s skip locked

-- name: update
-- Purpose: replace the definition of a schedule; a changed time counts from now on. Index: the primary key.
-- Under the lock of the schedule. A pause stays.
update duly.schedules set
    cron = %(cron)s, timezone = %(timezone)s, job_type = %(job_type)s, payload = %(payload)s,
    missed_policy = %(missed_policy)s, project_id = %(project_id)s, next_tick_at = %(next_tick_at)s,
    counted_until = %(counted_until)s, retry_at = null, last_error = null, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
returning *, duly.now() as read_at
