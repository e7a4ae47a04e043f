-- Purpose: the views that a tenant may read, and whether they run with the rights of who asks.
select c.relname::text as view_name, coalesce((
    select o.option_value::boolean from pg_options_to_table(c.reloptions) o where o.option_name = 'security_invoker'),
    false) as invoker
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
where c.relkind = 'v' and has_any_column_privilege('duly_tenant', c.oid, 'select')
order by 1
