-- Purpose: create an org, or rename it if it exists; return the name that it had. Index: the primary key.
-- Locks: its row, if there is one, so that concurrent renames each record the right previous name.
with before as materialized (
    select o.name from duly.organizations o where o.org_id = %(org_id)s for update
), made as (
    insert into duly.organizations (org_id, name) values (%(org_id)s, %(name)s)
    on conflict (org_id) do update set name = excluded.name, updated_at = duly.now()
    returning org_id
)
select (select b.name from before b) from made
