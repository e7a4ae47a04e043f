-- Purpose: tables with many more dead rows than living ones.
select s.relname::text as table_name, s.n_dead_tup as dead, s.n_live_tup as live
from pg_catalog.pg_stat_user_tables s
where s.schemaname = 'duly' and s.n_dead_tup > %(most)s and s.n_dead_tup > s.n_live_tup
order by 2 desc, 1 limit 5
