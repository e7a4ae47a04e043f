-- Purpose: read the size, connections, oldest transaction and standbys of the server, and the tables of the schema with the
-- most dead rows. Runs as the login role, which may see more than the engine; what it may not see either is null.
-- The times of the server are compared with its own clock.
select case when has_database_privilege(current_database(), 'connect') then pg_database_size(current_database()) end as bytes,
       (select sum(d.numbackends) from pg_catalog.pg_stat_database d)::integer as connections,
       current_setting('max_connections')::integer as max_connections,
       (select max(now() - a.xact_start) from pg_catalog.pg_stat_activity a
        where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend')
           as oldest_transaction,
       (select count(*) from pg_catalog.pg_stat_replication r)::integer as standbys,
       (select max(r.replay_lag) from pg_catalog.pg_stat_replication r) as replication_lag,
       (select coalesce(jsonb_agg(to_jsonb(t)), '[]') from (
            select s.relname as name, s.n_live_tup as live, s.n_dead_tup as dead,
                   greatest(s.last_vacuum, s.last_autovacuum) as vacuumed_at
            from pg_catalog.pg_stat_user_tables s
            where s.schemaname = 'duly' and s.n_dead_tup > 0
            order by s.n_dead_tup desc, s.relname limit %(tables)s) t) as tables
