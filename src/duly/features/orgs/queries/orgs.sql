-- name: add
-- Purpose: create an org; no row if one of that id exists. Index: the primary key.
insert into duly.organizations (org_id, name) values (%(org_id)s, %(name)s)
on conflict (org_id) do nothing
returning org_id, name, status, created_at, updated_at

-- name: change
-- Purpose: write the name and the status of a locked org. Index: the primary key.
update duly.organizations set name = %(name)s, status = %(status)s, updated_at = duly.now()
where org_id = %(org_id)s
returning org_id, name, status, created_at, updated_at

-- name: check_active
-- Purpose: return the database's time; raise if the org is unknown or suspended.
select duly.now() from duly.check_org(%(org_id)s)

-- name: create_project
-- Purpose: create a project, or rename it if it exists. Index: the primary key.
insert into duly.projects (org_id, project_id, name) values (%(org_id)s, %(project_id)s, %(name)s)
on conflict (org_id, project_id) do update set name = excluded.name

-- name: find
-- Purpose: return a row if the org exists, active or not. Index: the primary key.
select from duly.organizations where org_id = %(org_id)s

-- name: list
-- Purpose: read orgs by id, with the database's time. Index: the primary key.
select org_id, duly.now(), name, status, created_at, updated_at
from duly.organizations
where org_id > %(after)s
order by org_id
limit %(limit)s

-- name: lock
-- Purpose: lock an org for a change of it, of its keys or of its members. Index: the primary key.
-- Locks: its row, against other such changes; jobs are enqueued and keys accepted meanwhile.
select org_id, name, status, created_at, updated_at from duly.organizations where org_id = %(org_id)s
for no key update

-- name: read
-- Purpose: read an org, active or not. Index: the primary key.
select org_id, name, status, created_at, updated_at from duly.organizations where org_id = %(org_id)s

-- name: read_names
-- Purpose: read the names of these orgs. Index: the primary key.
select o.org_id, o.name from duly.organizations o where o.org_id = any (%(org_ids)s)
