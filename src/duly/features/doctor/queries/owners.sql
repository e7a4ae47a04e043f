-- Purpose: tables and views of the schema that belong to somebody else than its roles.
select c.relname::text as relation, c.relowner::regrole::text as owner,
       case when c.relkind = 'v' then 'view' else 'table' end as kind
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
join pg_catalog.pg_roles r on r.oid = c.relowner
where c.relkind in ('r', 'p', 'v') and r.rolname not in ('duly_owner', 'duly_engine')
order by 1
