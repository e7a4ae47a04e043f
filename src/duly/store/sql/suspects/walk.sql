-- Purpose: the active jobs among the next of all jobs, for a slow walk around everything there is: it finds what no
-- queue and no claim knows of. The row without a job says how far the walk came.
-- Index: the primary keys of records and states; what has ended is left after one look.
with stretch as materialized (
    select r.org_id, r.job_id from duly.job_records r
    where (r.org_id, r.job_id) > (%(org_id)s, %(job_id)s) order by r.org_id, r.job_id limit %(steps)s
), last as (
    select x.org_id, x.job_id, (select count(*) from stretch) as steps from stretch x order by x.org_id desc, x.job_id desc limit 1
), active as (
    select x.org_id, x.job_id from stretch x left join duly.job_states s using (org_id, job_id)
    where s.status is null or s.status in ('queued', 'running', 'partial')
)
select l.org_id, l.job_id, l.steps, a.org_id, a.job_id from last l left join active a on true
