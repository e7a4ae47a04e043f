-- Purpose: one project of an org. Index: the primary key.
select org_id, project_id, name, created_at from duly.projects
where org_id = %(org_id)s and project_id = %(project_id)s
