-- Purpose: make somebody a member, or change their role. Index: the primary key.
insert into duly.members (org_id, user_id, role) values (%(org_id)s, %(user_id)s, %(role)s)
on conflict (org_id, user_id) do update set role = excluded.role
returning org_id, user_id, role, created_at
