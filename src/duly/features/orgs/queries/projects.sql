-- name: add
-- Purpose: a new project of an org; nothing if there is one of that id. Index: the primary key.
insert into duly.projects (org_id, project_id, name) values (%(org_id)s, %(project_id)s, %(name)s)
on conflict (org_id, project_id) do nothing
returning org_id, project_id, name, created_at

-- name: list
-- Purpose: the projects of an org, in the order of their ids. Index: the primary key.
select org_id, project_id, name, created_at from duly.projects
where org_id = %(org_id)s and project_id > %(after)s
order by project_id
limit %(limit)s

-- name: read
-- Purpose: one project of an org. Index: the primary key.
select org_id, project_id, name, created_at from duly.projects
where org_id = %(org_id)s and project_id = %(project_id)s
