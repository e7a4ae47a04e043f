-- Purpose: a new org; nothing if there is one of that id. Index: the primary key.
insert into duly.organizations (org_id, name) values (%(org_id)s, %(name)s)
on conflict (org_id) do nothing
returning org_id, name, status, created_at, updated_at
