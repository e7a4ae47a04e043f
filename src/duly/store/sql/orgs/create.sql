-- Purpose: make an org known; a second call changes its name only. Index: the primary key.
insert into duly.organizations (org_id, name) values (%(org_id)s, %(name)s)
on conflict (org_id) do update set name = excluded.name, updated_at = duly.now()
