-- Purpose: the settings by which a commit may be lost.
select name, setting from pg_catalog.pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') order by name
