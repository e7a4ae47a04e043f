-- Purpose: the projects of an org, in the order of their ids. Index: the primary key.
select org_id, project_id, name, created_at from duly.projects
where org_id = %(org_id)s and project_id > %(after)s
order by project_id
limit %(limit)s
