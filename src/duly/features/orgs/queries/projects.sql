-- name: add
-- Purpose: create a project; no row if the org has one of that id. Index: the primary key.
insert into duly.projects (org_id, project_id, name) values (%(org_id)s, %(project_id)s, %(name)s)
on conflict (org_id, project_id) do nothing
returning org_id, project_id, name, created_at

-- name: list
-- Purpose: read the projects of an org by id. Index: the primary key.
select org_id, project_id, name, created_at from duly.projects
where org_id = %(org_id)s and project_id > %(after)s
order by project_id
limit %(limit)s

-- name: read
-- Purpose: read a project of an org. Index: the primary key.
select org_id, project_id, name, created_at from duly.projects
where org_id = %(org_id)s and project_id = %(project_id)s
