-- Purpose: how many jobs died since a time, by queue, counted no further than `most`.
-- Index: event_log_rare; the primary key of the records.
with dead as materialized (
    select e.org_id, e.job_id from duly.event_log e
    where e.event_type = 'job.deadlettered' and e.occurred_at >= duly.now() - %(since)s::interval
    limit %(most)s
)
select r.queue, count(*) as jobs
from dead d
cross join lateral (
    select r.queue from duly.job_records r where r.org_id = d.org_id and r.job_id = d.job_id limit 1) r
group by r.queue
