-- Purpose: the tables whose rows come and go, and that hold so many dead ones that finding a living one takes long.
-- Autovacuum looks once a minute; in a minute a busy queue leaves half a million.
select s.relname::text
from pg_catalog.pg_stat_user_tables s
where s.schemaname = 'duly' and s.relname = any (%(busy)s)
  and s.n_dead_tup > %(most)s + 0.1 * s.n_live_tup
