-- Purpose: make a schedule; nothing if the org has one of that name. Index: schedules_by_name.
-- A node that was faster is waited for, so that its row is seen next.
insert into duly.schedules (
    org_id, name, cron, timezone, job_type, payload, missed_policy, project_id, next_tick_at, counted_until,
    created_by, created_at, updated_at)
values (
    %(org_id)s, %(name)s, %(cron)s, %(timezone)s, %(job_type)s, %(payload)s, %(missed_policy)s, %(project_id)s,
    %(next_tick_at)s, duly.now(), %(created_by)s, duly.now(), duly.now())
on conflict (org_id, name) where deleted_at is null do nothing
returning *, duly.now() as read_at
