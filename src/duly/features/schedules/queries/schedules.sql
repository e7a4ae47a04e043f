-- name: advance
-- Purpose: note how far the ticks are recorded, and when the next one comes. Index: the primary key.
-- Under the lock of the schedule. What stood in its way is forgotten.
update duly.schedules set
    counted_until = %(counted_until)s, next_tick_at = %(next_tick_at)s,
    last_tick_at = coalesce(%(last_tick_at)s, last_tick_at), retry_at = null, last_error = null
where org_id = %(org_id)s and schedule_id = %(schedule_id)s

-- name: delete
-- Purpose: end a schedule; the row and its ticks stay as history. Index: the primary key.
-- Under the lock of the schedule.
update duly.schedules set deleted_at = duly.now(), next_tick_at = null, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s

-- name: find_ticks
-- Purpose: which of these ticks are recorded already. Index: the primary key.
-- Read under the lock of the schedule, so that nobody records one of them meanwhile.
select t.tick_at from duly.schedule_ticks t
where t.org_id = %(org_id)s and t.schedule_id = %(schedule_id)s and t.tick_at = any (%(ticks)s)

-- name: list
-- Purpose: the next schedules of an org by name; with a limit of null, all of them. Index: schedules_by_name.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name > %(after)s and deleted_at is null
order by name
limit %(limit)s

-- name: lock
-- Purpose: one schedule, for a change. Index: schedules_by_name. Locks: the row; waits for a scheduler at work.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name = %(name)s and deleted_at is null
for update

-- name: next_due
-- Purpose: how long until the next tick to come, of job types that this process knows. Index: schedules_due.
select s.next_tick_at - duly.now()
from duly.schedules s
where s.deleted_at is null and s.next_tick_at > duly.now() and s.job_type = any (%(job_types)s)
order by s.next_tick_at
limit 1

-- name: open_org
-- Purpose: the database's time, if this org may have schedules.
select duly.now() from duly.check_org(%(org_id)s)

-- name: pause
-- Purpose: pause a schedule (or, without a name of who pauses, resume it). Index: the primary key.
-- Under the lock of the schedule.
update duly.schedules set
    paused_at = case when %(paused_by)s::text is not null then duly.now() end,
    paused_by = %(paused_by)s, pause_reason = %(reason)s, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
returning *, duly.now() as read_at

-- name: read
-- Purpose: one schedule of an org. Index: schedules_by_name.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name = %(name)s and deleted_at is null

-- name: record_ticks
-- Purpose: record what became of ticks: the job that was enqueued, or none if it was missed.
-- The primary key lets a tick be recorded once, however many schedulers there are.
insert into duly.schedule_ticks (org_id, schedule_id, tick_at, disposition, job_id, recorded_at)
select %(org_id)s, %(schedule_id)s, t.tick_at,
       case when t.job_id is null then 'missed' else 'enqueued' end, t.job_id, duly.now()
from unnest(%(ticks)s::timestamptz[], %(job_ids)s::uuid[]) as t(tick_at, job_id)

-- name: set_aside
-- Purpose: leave a schedule alone for a while that could not be served, and say why. Index: the primary key.
-- Its ticks stay due: they are served when the obstacle is gone.
update duly.schedules set retry_at = duly.now() + %(pause)s, last_error = %(error)s
where org_id = %(org_id)s and schedule_id = %(schedule_id)s

-- name: update
-- Purpose: give a schedule another definition; a changed time counts from now on. Index: the primary key.
-- Under the lock of the schedule. It stays paused if it was.
update duly.schedules set
    cron = %(cron)s, timezone = %(timezone)s, job_type = %(job_type)s, payload = %(payload)s,
    missed_policy = %(missed_policy)s, project_id = %(project_id)s, next_tick_at = %(next_tick_at)s,
    counted_until = %(counted_until)s, retry_at = null, last_error = null, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
returning *, duly.now() as read_at
