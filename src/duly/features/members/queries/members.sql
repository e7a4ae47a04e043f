-- name: admins
-- Purpose: the ids of those who administer an org. Index: the primary key.
select user_id from duly.members
where org_id = %(org_id)s and role = 'admin'
order by user_id
limit %(limit)s

-- name: list
-- Purpose: the members of an org, in the order of their ids. Index: the primary key.
select org_id, user_id, role, created_at from duly.members
where org_id = %(org_id)s and user_id > %(after)s
order by user_id
limit %(limit)s

-- name: read
-- Purpose: what somebody is in an org, active or not. Index: the primary key.
select org_id, user_id, role, created_at from duly.members where org_id = %(org_id)s and user_id = %(user_id)s

-- name: remove
-- Purpose: end a membership; whoever it was. Index: the primary key.
delete from duly.members where org_id = %(org_id)s and user_id = %(user_id)s
returning org_id, user_id, role, created_at

-- name: role
-- Purpose: what somebody is in an active org. Index: the primary keys.
select m.role from duly.members m
join duly.organizations o on o.org_id = m.org_id and o.status = 'active'
where m.org_id = %(org_id)s and m.user_id = %(user_id)s

-- name: set
-- Purpose: make somebody a member, or change their role. Index: the primary key.
insert into duly.members (org_id, user_id, role) values (%(org_id)s, %(user_id)s, %(role)s)
on conflict (org_id, user_id) do update set role = excluded.role
returning org_id, user_id, role, created_at
