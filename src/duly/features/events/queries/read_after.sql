-- Purpose: the events of a job after a known one, in order. Index: the primary key.
select * from duly.job_events
where org_id = %(org_id)s and job_id = %(job_id)s and event_seq > %(after_seq)s
order by event_seq limit %(limit)s
