-- Purpose: the next schedules of an org by name; with a limit of null, all of them. Index: schedules_by_name.
select *, duly.now() as read_at from duly.schedules
where org_id = %(org_id)s and name > %(after)s and deleted_at is null
order by name
limit %(limit)s
