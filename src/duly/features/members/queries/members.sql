-- name: list
-- Purpose: read the members of an org by user id. Index: the primary key.
select org_id, user_id, role, created_at from duly.members
where org_id = %(org_id)s and user_id > %(after)s
order by user_id
limit %(limit)s

-- name: list_admins
-- Purpose: read the user ids of an org's admins. Index: the primary key.
select user_id from duly.members
where org_id = %(org_id)s and role = 'admin'
order by user_id
limit %(limit)s

-- name: read
-- Purpose: read a member of an org, active or not. Index: the primary key.
select org_id, user_id, role, created_at from duly.members where org_id = %(org_id)s and user_id = %(user_id)s

-- name: read_role
-- Purpose: read the role of a member of an active org. Index: the primary keys.
select m.role from duly.members m
join duly.organizations o on o.org_id = m.org_id and o.status = 'active'
where m.org_id = %(org_id)s and m.user_id = %(user_id)s

-- name: remove
-- Purpose: remove a member and return the row. Index: the primary key.
delete from duly.members where org_id = %(org_id)s and user_id = %(user_id)s
returning org_id, user_id, role, created_at

-- name: set
-- Purpose: add a member, or change the role of one. Index: the primary key.
insert into duly.members (org_id, user_id, role) values (%(org_id)s, %(user_id)s, %(role)s)
on conflict (org_id, user_id) do update set role = excluded.role
returning org_id, user_id, role, created_at
