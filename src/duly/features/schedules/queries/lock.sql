-- Purpose: one schedule, for a change. Index: schedules_by_name. Locks: the row; waits for a scheduler at work.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name = %(name)s and deleted_at is null
for update
