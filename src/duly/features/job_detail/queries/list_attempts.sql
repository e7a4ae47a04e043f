-- Purpose: list the last attempts of a job, newest first. Index: the primary key of the events.
select attempt, worker_id, started_at, ended_at, ended_by, detail from duly.job_attempts
where org_id = %(org_id)s and job_id = %(job_id)s
order by attempt desc limit %(limit)s
