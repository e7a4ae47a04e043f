-- Purpose: whether the server cleans up by itself, and the tables that were taken out of it.
select current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean as works,
       array(
           select c.relname::text
           from pg_catalog.pg_class c
           join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = 'duly'
           cross join lateral pg_options_to_table(c.reloptions) o
           where o.option_name = 'autovacuum_enabled' and not o.option_value::boolean order by 1) as excepted
