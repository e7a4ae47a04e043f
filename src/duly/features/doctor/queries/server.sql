-- Purpose: which server this is, and which of its processes answers: behind a pooler, another one each time.
-- One statement, so that it needs no transaction: poolers may refuse those.
select current_setting('server_version_num')::integer as version,
       split_part(current_setting('server_version'), ' ', 1) as version_name,
       current_database()::text as database, session_user::text as login, pg_is_in_recovery() as standby,
       pg_postmaster_start_time() as started_at, pg_backend_pid() as pid
