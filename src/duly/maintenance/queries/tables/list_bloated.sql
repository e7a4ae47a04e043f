-- Purpose: list the queue tables with so many dead rows that finding a living one takes long.
-- Autovacuum checks once a minute; in a minute a busy queue leaves half a million dead rows.
select s.relname::text
from pg_catalog.pg_stat_user_tables s
where s.schemaname = 'duly' and s.relname = any (%(tables)s)
  and s.n_dead_tup > %(max_dead_rows)s + 0.1 * s.n_live_tup
