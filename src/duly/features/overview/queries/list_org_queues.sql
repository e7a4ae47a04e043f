-- Purpose: list all queues with their pause, and the number of scheduled and running jobs of an org in each, counted up to
-- `limit` + 1; and how many jobs of the org the reconciler failed since a time, among the latest `limit` of all orgs.
-- Index: scheduled_by_org; claims are few; primary keys; event_log_rare.
with scheduled_jobs as materialized (
    select s.queue from duly.scheduled s where s.org_id = %(org_id)s limit %(limit)s + 1
), held_ids as materialized (
    select distinct h.job_id
    from (select h.job_id from duly.held_jobs h where h.org_id = %(org_id)s limit %(limit)s + 1) h
), held as materialized (
    select r.queue
    from held_ids j
    cross join lateral (
        select r.queue from duly.job_records r where r.org_id = %(org_id)s and r.job_id = j.job_id limit 1) r
), reconciled as (
    select count(*) as n
    from (
        select e.org_id, e.status from duly.event_log e
        where e.event_type = 'job.reconciled' and e.occurred_at >= duly.now() - %(since)s::interval
        order by e.occurred_at desc limit %(limit)s
    ) e
    where e.org_id = %(org_id)s and e.status = 'failed'
)
select q.queue, q.paused_at,
       (select count(*) from scheduled_jobs t where t.queue = q.queue) as scheduled,
       (select count(*) from held h where h.queue = q.queue) as running,
       (select r.n from reconciled r) as reconciled
from duly.queues q
order by q.weight desc, q.queue
