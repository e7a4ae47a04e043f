-- Purpose: another name or status for a locked org. Index: the primary key.
update duly.organizations set name = %(name)s, status = %(status)s, updated_at = duly.now()
where org_id = %(org_id)s
returning org_id, name, status, created_at, updated_at
