-- Purpose: pause a schedule (or, without a name of who pauses, resume it). Index: the primary key.
-- Under the lock of the schedule.
update duly.schedules set
    paused_at = case when %(paused_by)s::text is not null then duly.now() end,
    paused_by = %(paused_by)s, pause_reason = %(reason)s, updated_at = duly.now()
where org_id = %(org_id)s and schedule_id = %(schedule_id)s
returning *, duly.now() as read_at
