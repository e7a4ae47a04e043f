-- Purpose: how large the database is, and where it lies; the latter is told to the privileged only.
select pg_database_size(current_database()) as bytes, inet_server_addr() is null as same_machine,
       (select s.setting from pg_catalog.pg_settings s where s.name = 'data_directory') as directory
