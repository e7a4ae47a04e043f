-- Purpose: every table that holds rows of an org, whether it has row level security, and its policies.
select c.relname::text as table_name, c.relispartition as is_partition, c.relrowsecurity as enabled,
       c.relforcerowsecurity as forced,
       coalesce((
           select json_object_agg(p.polname, json_build_array(
               p.polcmd, p.polpermissive, (select string_agg(coalesce(r.rolname, 'public'), ' ' order by r.rolname)
                          from unnest(p.polroles) o left join pg_catalog.pg_roles r on r.oid = o),
               pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)))
           from pg_catalog.pg_policy p where p.polrelid = c.oid), '{}') as policies
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
where c.relkind in ('r', 'p') and exists (
    select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped)
order by c.relispartition, c.relname
