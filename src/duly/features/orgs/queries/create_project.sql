-- Purpose: make a project of an org known; a second call changes its name only. Index: the primary key.
insert into duly.projects (org_id, project_id, name) values (%(org_id)s, %(project_id)s, %(name)s)
on conflict (org_id, project_id) do update set name = excluded.name
