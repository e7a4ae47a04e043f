-- name: create_if_missing
-- Purpose: create an org unless it exists; it keeps its name then. Index: the primary key.
insert into duly.organizations (org_id, name) values (%(org_id)s, %(name)s) on conflict (org_id) do nothing returning org_id
