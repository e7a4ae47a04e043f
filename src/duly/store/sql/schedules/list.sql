-- Purpose: the schedules of an org by name. Index: schedules_by_name.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and deleted_at is null
order by name
