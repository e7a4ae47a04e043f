-- Purpose: one org, active or not. Index: the primary key.
select org_id, name, status, created_at, updated_at from duly.organizations where org_id = %(org_id)s
