-- Purpose: whom a folder is for from now on, all of them at once.
with gone as (
    delete from documents.node_grants
    where org_id = %(org_id)s and node_id = %(node_id)s and principal <> all(%(principals)s)
)
insert into documents.node_grants (org_id, node_id, principal, level, granted_by)
select %(org_id)s, %(node_id)s, g.principal, g.level, %(granted_by)s
from unnest(%(principals)s::text[], %(levels)s::text[]) g(principal, level)
on conflict (org_id, node_id, principal) do update set level = excluded.level, granted_by = excluded.granted_by
