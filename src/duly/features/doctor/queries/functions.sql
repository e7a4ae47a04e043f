-- Purpose: the functions that run with their owner's rights: whose they are, and whose they should be.
-- What a tenant may call works as the engine, which is bound by policies; the rest as the owner of the schema.
select format('duly.%%I(%%s)', p.proname, pg_get_function_identity_arguments(p.oid)) as function_name,
       p.proowner::regrole::text as owner,
       case when has_function_privilege('duly_tenant', p.oid, 'execute') then 'duly_engine' else 'duly_owner' end as expected,
       exists (select from unnest(p.proconfig) s where s = 'search_path=pg_catalog, pg_temp') as pinned
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname = 'duly'
where p.prosecdef
order by 1
