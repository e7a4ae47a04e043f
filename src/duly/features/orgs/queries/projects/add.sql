-- Purpose: a new project of an org; nothing if there is one of that id. Index: the primary key.
insert into duly.projects (org_id, project_id, name) values (%(org_id)s, %(project_id)s, %(name)s)
on conflict (org_id, project_id) do nothing
returning org_id, project_id, name, created_at
