-- Purpose: whether the log is archived if it should be. The server's own times: against its own clock.
select coalesce(a.last_failed_time > coalesce(a.last_archived_time, '-infinity'), false) as failing,
       a.last_failed_wal as segment, now() - a.last_archived_time as since
from pg_catalog.pg_stat_archiver a
where current_setting('archive_mode') <> 'off'
