-- Purpose: the last events of a job, the newest first. Index: the primary key, backwards.
select * from duly.job_events
where org_id = %(org_id)s and job_id = %(job_id)s
order by event_seq desc limit %(limit)s
