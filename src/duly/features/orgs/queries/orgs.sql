-- name: add
-- Purpose: a new org; nothing if there is one of that id. Index: the primary key.
insert into duly.organizations (org_id, name) values (%(org_id)s, %(name)s)
on conflict (org_id) do nothing
returning org_id, name, status, created_at, updated_at

-- name: change
-- Purpose: another name or status for a locked org. Index: the primary key.
update duly.organizations set name = %(name)s, status = %(status)s, updated_at = duly.now()
where org_id = %(org_id)s
returning org_id, name, status, created_at, updated_at

-- name: create_project
-- Purpose: make a project of an org known; a second call changes its name only. Index: the primary key.
insert into duly.projects (org_id, project_id, name) values (%(org_id)s, %(project_id)s, %(name)s)
on conflict (org_id, project_id) do update set name = excluded.name

-- name: find
-- Purpose: whether an org is known, active or not. Index: the primary key.
select from duly.organizations where org_id = %(org_id)s

-- name: list
-- Purpose: the next orgs, in the order of their ids, and the database's time. Index: the primary key.
select org_id, duly.now(), name, status, created_at, updated_at
from duly.organizations
where org_id > %(after)s
order by org_id
limit %(limit)s

-- name: lock
-- Purpose: one org, to be changed, or its keys or members. Index: the primary key.
-- Locks: its row, against other such changes; jobs are enqueued and keys believed meanwhile.
select org_id, name, status, created_at, updated_at from duly.organizations where org_id = %(org_id)s
for no key update

-- name: names
-- Purpose: what these orgs are called. Index: the primary key.
select o.org_id, o.name from duly.organizations o where o.org_id = any (%(org_ids)s)

-- name: read
-- Purpose: one org, active or not. Index: the primary key.
select org_id, name, status, created_at, updated_at from duly.organizations where org_id = %(org_id)s
