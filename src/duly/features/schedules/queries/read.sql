-- Purpose: one schedule of an org. Index: schedules_by_name.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name = %(name)s and deleted_at is null
